"""Asking in other ways than one request for one reply: in batches, by the tokens of a minute, in conversations.

Input: attempts, providers, prices, and what an earlier session had stored.
Output: replies, or why they are still owed. What was paid for is stored before the next request.
"""
