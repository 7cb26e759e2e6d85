"""Slack by a webhook: one message a night, beside the one that `slack_webhook_env` names."""

from __future__ import annotations

from pydantic import SecretStr

from ragmetrics.config import ChannelSettings
from ragmetrics.delivery import webhook
from ragmetrics.delivery.channel import ChannelKind
from ragmetrics.delivery.notification_channels import in_any_form
from ragmetrics.messages import Message


def _send(message: Message, settings: ChannelSettings, address: SecretStr) -> None:
    in_any_form(message, lambda form: webhook.send(form, address))


def _verify(settings: ChannelSettings, address: SecretStr) -> str:
    return webhook.verify(address)


slack_webhook = ChannelKind("slack_webhook", _send, _verify, "http://{host}/services/T0/B0/secret")
