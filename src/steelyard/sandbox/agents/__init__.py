"""Agents in a sandbox: they are given what they declare, and a proxy is their only way out.

Comes in: a command, with the folders, variables and hosts that an agent declares.
Goes out: how it ended, and what the proxy refused.
"""
