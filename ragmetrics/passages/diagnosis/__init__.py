"""Diagnosis: what happened to passages that questions needed and no longer get.

It compares what two sides retrieved and names the stage at which each passage was lost. It decides
no alert (`alerts`) and computes no score (`scoring`).
"""
