#!/bin/sh
# What a container does to deploy (docker-compose.yaml, kubernetes/deploy.yaml): work pool, flows and
# automations. May be repeated. Exit code 2: another try would end the same. With RAGMETRICS_POOL=kubernetes
# each run is a Job of RAGMETRICS_IMAGE in RAGMETRICS_NAMESPACE.
set -eu
cd "$(dirname "$0")/.."

case "${SLACK_WEBHOOK_URL-unset}" in
    unset)
        echo "SLACK_WEBHOOK_URL is not set, and nobody would be told that a night is missing: put it" \
            "into ragmetrics.env, or the line SLACK_WEBHOOK_URL= to go without Slack" >&2
        exit 2 ;;
    "") slack=--no-slack ;;
    *) slack= ;;
esac
if [ "${RAGMETRICS_POOL-process}" = kubernetes ]; then
    template=$(mktemp)
    sed -e "s|@IMAGE@|$RAGMETRICS_IMAGE|; s|@NAMESPACE@|$RAGMETRICS_NAMESPACE|" \
        deployments/kubernetes/pool.json > "$template"
    prefect work-pool create ragmetrics --type kubernetes --base-job-template "$template" --overwrite
else
    prefect work-pool inspect ragmetrics > /dev/null || prefect work-pool create ragmetrics --type process
fi
prefect --no-prompt deploy --all --prefect-file deployments/prefect.yaml
python -m flows.automations apply $slack
