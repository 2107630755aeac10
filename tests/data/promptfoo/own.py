def get_assert(output, context):
    return {"pass": context["vars"]["country"] == "Spain", "score": 0.7, "reason": output}
