"""How a run is carried out, as opposed to what it asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from steelyard.protocols import StreamMode
from steelyard.sandbox.sandbox import ZygoteSandbox
from steelyard.secret_texts import Environment
from steelyard.settings import Settings

if TYPE_CHECKING:
    from steelyard.engine.progress import ProgressCallback

AgentSandboxMode = Literal["auto", "on", "off"]


class RunOptions(NamedTuple):
    """How a run is carried out, as opposed to what it asks."""

    settings: Settings = Settings()
    parallelism: int | None = None
    max_cost: float | None = None
    watch: ProgressCallback | None = None
    environment: Mapping[str, str] = Environment()
    """Where keys and addresses are looked up: the environment of this process, or these variables instead."""
    require_isolation: str = ""
    """The weakest level of containment that will do; empty for any that holds."""
    allow_weak_sandbox: bool = False
    """Whether code may run where it can reach network, files and secrets."""
    recheck: int = 0
    """How often an attempt that passed or ran out of time is verified again."""
    controls: int | None = None
    """With how many false tests a pass beside its tests is tried, 0 to 2; None for the number of the run, or of the language."""
    control_key: str = ""
    """What decides which false tests these are: a run has its own."""
    python_env: str = ""
    """The virtual environment of Python answers, instead of the one their cases name."""
    backend: str = "local"
    """Where replies are verified: on this machine, `local`, or on the nodes of a Ray cluster, `ray`."""
    ray_address: str = ""
    """The Ray cluster, HOST:PORT; when empty the one that runs here, otherwise one for this run alone."""
    allow_code: bool = False
    """Whether code that files name may run although this user has not agreed to it."""
    ask_user: Callable[[str], bool] | None = None
    """Asks the user to agree to code that a file names; without a user to ask it is refused."""
    say: Callable[[str], None] | None = None
    """Called to tell the user once which code a run finds in the files that the user named, and what a cache would save."""
    batch: bool = False
    """Whether what is owed is asked in batches, where the provider has them."""
    cache_days: float | None = None
    """How many days old the replies of earlier runs may be that are taken instead of asking; None asks for all."""
    agent_sandbox: AgentSandboxMode = "auto"
    """Whether agents are contained: where they can be, `auto`; always, so that others are refused, `on`; or never, `off`."""
    stream: StreamMode | None = None
    """Whether answers are streamed; None for the setting of each provider. It changes no reply."""
    judges: tuple[str, ...] = ()
    """The judges of checks that are rubrics and name no judge themselves."""
    allow_self: bool = False
    """Whether a model may judge its own answers."""
    sandbox: ZygoteSandbox | None = None
    """Where code runs on this machine; the strongest that holds here when left out."""

    @property
    def variables(self) -> Environment:
        """The environment, as all parts get it: its values are hidden."""
        return Environment(self.environment)

    def __repr__(self) -> str:
        given = self._replace(environment=self.variables)
        return f"RunOptions({', '.join(f'{name}={value!r}' for name, value in zip(self._fields, given, strict=True))})"
