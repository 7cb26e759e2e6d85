"""Write-back: sends the scores of a night to the tracing tools that its rows came from.

It reads the stored rows and scores of a published run. It computes no scores and decides no alerts.
What is to be sent is recorded in the store before it is sent, and what was sent after that, so a
run that dies, or a target that is down, loses nothing.
"""
