"""Providers: one module for each wire format, programs, functions, agents and recorded replies, and their prices.

Input: an attempt, and the settings of a provider. Output: an Answer with what it cost, or Unavailable or Rejected.
Retries, pace and budget are the engine's; keys never leave this room in a message.
"""
