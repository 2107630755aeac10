"""A model and a judge that cost nothing."""

CODE = {
    "double": "def double(n):\n    return n + n",
    "shout": "def shout(text):\n    return text.upper() + '!'",
    "last": "def last(items):\n    return items[-1]",
}


def answer(prompt: str) -> str:
    """Right when asked politely, and wrong about `double` otherwise."""
    name = next(name for name in CODE if name in prompt)
    code = CODE[name] if prompt.startswith("Please") else CODE[name].replace("n + n", "n")
    return f"```python\n{code}\n```"


def judge(prompt: str) -> str:
    """Likes what is right, except shouting."""
    score = 0.9 if "items[-1]" in prompt or "n + n" in prompt else 0.4
    return f'{{"categories": {{"works": {{"score": {score}, "reason": "as it looks"}}}}}}'
