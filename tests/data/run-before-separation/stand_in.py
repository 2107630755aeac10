"""A model and a judge that cost nothing."""


def answer(prompt: str) -> str:
    """Right when asked politely, and wrong about `double` otherwise."""
    if "double" in prompt:
        return f"```python\ndef double(n):\n    return {'n + n' if prompt.startswith('Please') else 'n'}\n```"
    return '```sh\ngreet() { echo "Hello, $1"; }\n```'


def judge(prompt: str) -> str:
    """Likes what is right or friendly."""
    score = 0.9 if any(part in prompt for part in ("n + n", "Hello", "n / 2")) else 0.4
    if "It is friendly." in prompt:
        return f'{{"categories": {{"rubric": {{"score": {round(score)}, "reason": "as it looks"}}}}}}'
    return f'{{"categories": {{"works": {{"score": {score}, "reason": "as it looks"}}}}}}'
