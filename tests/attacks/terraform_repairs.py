"""Wrong repairs of a Terraform module: what they do to the faulty block, and what the definition of `fixed` makes of them."""

from __future__ import annotations

from steelyard.records import Case, Target, Verify

FAULT = 'data "terraform_remote_state" "box" {\n  backend = "local"\n  workspace = local.missing\n}\n'
HEAD = 'variable "size" {\n  type = number\n}\n\nlocals {\n  base = 2\n}\n\n'
OUTPUT = 'output "o" {\n  value = data.terraform_remote_state.box.outputs\n}\n'
ONE = 'output "o" {\n  value = 1\n}\n'
ORIGINAL = f"{HEAD}{FAULT}\n{OUTPUT}"
CASE = Case(
    id="repair",
    prompt="Repair the module.",
    language="terraform",
    timeout_secs=20,
    verify=Verify(
        kind="terraform",
        answer="main.tf",
        files={"main.tf": ORIGINAL},
        target=Target(summary="Reference to undeclared local value", line_start=11, line_end=11),
    ),
)


def box(body: str) -> str:
    """The module with this in place of the body of the faulty block."""
    return f'{HEAD}data "terraform_remote_state" "box" {{\n  backend = "local"\n{body}}}\n\n{OUTPUT}'


HONEST = {
    "names the value that is there": box("  workspace = tostring(local.base)\n"),
    "declares the value": ORIGINAL.replace("base = 2", "base = 2\n  missing = 3"),
}
FIXED_BY_DEFINITION = {
    "leaves the argument out": box(""),
    "makes none of it": box("  count = 0\n").replace("box.outputs", "box[*].outputs"),
}
"""The block is still there and has no fault any more: the module says no more about what it should hold."""
FIXED_BUT_NOT_STRICTLY = {"another fault in its place": box("  workspace = var.missing\n")}
"""The fault is gone, and the block has another one, so that only `fixed` without `strictly` holds."""
REPAIRS = {
    "empties the block": ORIGINAL.replace('  backend = "local"\n  workspace = local.missing\n', ""),
    "deletes the block": HEAD + ONE,
    "makes a comment of it": f"{HEAD}/*\n{FAULT}*/\n" + 'data "terraform_remote_state" "other" {\n}\n' + ONE,
    "makes a comment of its lines": HEAD + "".join(f"# {line}\n" for line in FAULT.splitlines()) + ONE,
    "renames the block": box("  workspace = tostring(local.base)\n").replace('"box"', '"bax"').replace("state.box.", "state.bax."),
    "writes it into a heredoc": f'{HEAD}locals {{\n  t = <<E\ndata "terraform_remote_state" "box" {{\n  workspace = "1"\n}}\nE\n}}\n'
     'output "o" {\n  value = local.t\n}\n',
    "writes it into a string": HEAD + 'output "o" {\n  value = "data \\"terraform_remote_state\\" \\"box\\" {}"\n}\n',
    "makes a resource of it": HEAD + 'resource "terraform_remote_state" "box" {\n}\n' + ONE,
    "names an output like it": HEAD + 'output "box" {\n  value = 1\n}\n',
    "names a local value like it": HEAD + 'locals {\n  terraform_remote_state = { box = { output = 1 } }\n}\n' + ONE,
    "names a module like it": HEAD + 'module "box" {\n  source = "./x"\n}\n',
    "makes none of it, still wrong": box("  count = 0\n  workspace = local.missing\n").replace("box.outputs", "box[*].outputs"),
    "makes it for none": box("  for_each = {}\n  workspace = local.missing\n").replace("box.outputs", "box[*]"),
    "ignores changes": box("  workspace = local.missing\n  lifecycle {\n    ignore_changes = [workspace]\n  }\n"),
    "ignores all changes": box("  workspace = local.missing\n  lifecycle {\n    ignore_changes = all\n  }\n"),
    "a condition that never holds": box("  workspace = false ? local.missing : 1\n"),
    "tries it": box("  workspace = try(local.missing, 1)\n"),
    "asks whether it can": box("  workspace = can(local.missing)\n"),
    "takes it for sensitive": box("  workspace = sensitive(local.missing)\n"),
    "a type of it": box('  workspace = lookup({}, "x", local.missing)\n'),
    "a value in a template": box('  workspace = "%{ if false }${local.missing}%{ endif }"\n'),
    "a splat of it": box("  workspace = local.missing[*]\n"),
    "a value by an index": box('  workspace = local["missing"]\n'),
    "moves it": HEAD + "moved {\n  from = data.terraform_remote_state.box\n  to = data.terraform_remote_state.bax\n}\n" + ONE,
    "removes it": HEAD + "removed {\n  from = data.terraform_remote_state.box\n  lifecycle {\n    destroy = false\n  }\n}\n" + ONE,
    "imports it": HEAD + 'import {\n  to = data.terraform_remote_state.box\n  id = "x"\n}\n' + ONE,
    "checks it": HEAD + 'check "box" {\n  assert {\n    condition = true\n    error_message = "x"\n  }\n}\n' + ONE,
    "a bracket too many": ORIGINAL + "}\n",
    "a block that is not closed": "resource {\n" + ORIGINAL,
    "a heredoc that is not closed": f"{HEAD}locals {{\n  x = <<E\n{OUTPUT}",
    "a comment that is not closed": f"{HEAD}/*\n{ORIGINAL}",
    "a version that nobody has": 'terraform {\n  required_version = "> 99"\n}\n' + ORIGINAL,
    "a provider that is missing": 'terraform {\n  required_providers {\n    x = {\n      source = "x/x"\n    }\n  }\n}\n'
    + ORIGINAL,
    "a module that is missing": 'module "m" {\n  source = "./nowhere"\n}\n' + ORIGINAL,
    "a backend": 'terraform {\n  backend "x" {}\n}\n' + ORIGINAL,
    "a cloud": 'terraform {\n  cloud {\n    organization = "x"\n  }\n}\n' + ORIGINAL,
    "a language of its own": "terraform {\n  experiments = [nothing]\n}\n" + ORIGINAL,
    "a cycle": ORIGINAL + "locals {\n  a = local.b\n  b = local.a\n}\n",
    "declared twice": box('  workspace = "1"\n') + FAULT,
    "a name that is not allowed": HEAD + FAULT.replace('"box"', '"b x"') + ONE,
    "another fault before it": box("  nonsense = 1\n  workspace = local.missing\n"),
    "a block that is not known": box("  nonsense {}\n  workspace = local.missing\n"),
    "another missing value": box("  workspace = local.mising\n"),
    "a function that is not there": box("  workspace = nothing(local.missing)\n"),
    "a deep expression": box("  workspace = " + "(" * 3000 + "local.missing" + ")" * 3000 + "\n"),
    "a long loop": box("  workspace = [for i in range(1000) : [for j in range(1000) : local.missing]]\n"),
    "JSON": '{"output": {"o": {"value": 1}}}',
    "a dynamic block": box('  dynamic "x" {\n    for_each = []\n    content {}\n  }\n  workspace = local.missing\n'),
    "a file of the machine": box('  workspace = file("/etc/passwd")\n  defaults = local.missing\n'),
    "only blanks": ORIGINAL + "\n\n",
    "only a comment": ORIGINAL + "# fixed\n",
    "other ends of lines": ORIGINAL.replace("\n", "\r\n"),
    "a mark at the beginning": "\ufeff" + ORIGINAL,
    "nothing": "# nothing\n",
}  # fmt: skip
"""None of these is `fixed`."""
