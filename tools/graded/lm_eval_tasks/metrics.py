"""What the tasks measure of an answer."""


def _share(doc, results):
    wanted, had = doc["target"].split(), results[0].split()
    return sum(word in had for word in wanted) / len(wanted)


def f1(doc, results):
    return {"f1": _share(doc, results)}


def error(doc, results):
    return {"error_rate": 1 - _share(doc, results)}


def percent(doc, results):
    return {"percent": 100 * _share(doc, results)}


def both(doc, results):
    share = _share(doc, results)
    return {"exact_match": float(share == 1), "f1": share}
