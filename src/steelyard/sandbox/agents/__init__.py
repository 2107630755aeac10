"""Agents in a sandbox: they are given what they declare, and a proxy is their only way out.

Input: a command, with the folders, variables and hosts that an agent declares.
Output: how it ended, and what the proxy refused.
"""
