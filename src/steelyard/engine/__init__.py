"""The engine: plans, paces and joins the edges."""
