"""What is done before a run asks anybody.

Input: cases, settings and the machine. Output: chosen cases, proved references, a forecast of costs, offered models, the machine's health.
No model is asked for an attempt here.
"""
