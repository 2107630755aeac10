"""Judges repairs of Terraform modules: is the diagnostic gone, and is nothing else broken?

In come a module, a diagnostic and a repair; out comes a finding that says how far the repair goes.
Terraform runs in the sandbox alone, on copies of the module, and reaches no network.
"""
