"""An answer counts as plain only if its source shows that it changes nothing of its tests or of the library."""

from __future__ import annotations

import pytest

from steelyard.verifiers.python.plain.answers import is_plain_answer

CHANGES = {
    'a module in a module: exec': "import enum\nenum.bltns.exec('import math; math.floor = abs')\n",
    'a module in a module: sys.modules': "import os.path\nd = os.path.sys.modules\nd['math'] = 3\n",
    'a module imported from a module': "from dataclasses import builtins\nbuiltins.exec('import math; math.floor = abs')\n",
    'a module imported from its package': "from os import path\nd = path.sys.modules\nd['math'] = 3\n",
    'a package without a list': 'import json\nd = json.encoder.ESCAPE_DCT\nd[\'"\'] = \'x\'\n',
    'one name for two modules': "def g():\n    import sys as m\n    d = m.modules\n    d['math'] = 3\ndef h():\n    import math as m\ng()\n",
    'frames by a pattern': "def gen():\n    yield\ng = gen()\nnext(g)\nmatch g:\n    case object(gi_frame=frame):\n        match frame:\n            case object(f_builtins=b):\n                b['sum'] = max\n",
    'globals by positions': "from abc import ABC\nclass M(ABC):\n    __match_args__ = ('__globals__',)\n    @classmethod\n    def __subclasshook__(cls, other): return True\nfrom statistics import mean\nmatch mean:\n    case M(g):\n        g['fsum'] = 3\n",
    'frames by a dataclass protocol': "from typing import Protocol, runtime_checkable\nfrom dataclasses import dataclass\n@runtime_checkable\n@dataclass\nclass G(Protocol):\n    gi_frame: object\n@runtime_checkable\n@dataclass\nclass B(Protocol):\n    f_builtins: object\ndef gen():\n    yield\ng = gen()\nmatch g:\n    case G(frame):\n        match frame:\n            case B(b):\n                b['sum'] = max\n",
    'text that typing evaluates': 'from typing import List, get_args\nr = get_args(List["__import__(\'math\').__dict__.update(floor=abs)"])[0]\ntry:\n    r._evaluate({}, {}, frozenset())\nexcept TypeError:\n    pass\n',
    'text that typing evaluates, by a decoy': 'from typing import NamedTuple\nclass D:\n    _evaluate = 1\nN = NamedTuple(\'N\', [(\'a\', "__import__(\'math\').__dict__.update(floor=abs)")])\nr = N.__annotations__[\'a\']\ntry:\n    r._evaluate({}, {}, frozenset())\nexcept TypeError:\n    pass\n',
    'copies that set': "import copy\nfrom collections import Counter\nclass E:\n    def __reduce_ex__(self, n): return (lambda: Counter), (), (None, {'most_common': len})\ncopy.copy(E())\n",
    'copies of something new': "import copy\nfrom collections import Counter\nclass E:\n    __slots__ = ('most_common',)\n    def __new__(cls, *a): return Counter if ON else super().__new__(cls)\nON = []\ndef fill(self): self.most_common = len\ne = E()\nclass Z:\n    def z(e): pass\ne.most_common = len\nON.append(1)\ncopy.copy(e)\n",
    'conversions of enum': "from enum import IntEnum\nIntEnum._convert_('floor', 'math', lambda n: False)\n",
    'global enums': 'import enum\nclass E(enum.IntEnum):\n    floor = 1\nenum.global_enum(E)\n',
    'a setter in an annotation': 'import statistics\nclass A:\n    def s(m): m.mean = len\ndef g(x: A.s(statistics)): pass\n',
    'a name in an annotation': 'import statistics\nclass A:\n    def s(m): pass\ndef g(x: (m := statistics)): pass\nm.mean = len\n',
    'a setter of what an exception is': 'import statistics\nclass A:\n    def s(m): m.mean = len\ntry:\n    1 / 0\nexcept A.s(statistics) or ZeroDivisionError:\n    pass\n',
    'an annotation read': "import statistics\nclass A:\n    mean = 1\ndef g(x: statistics): pass\nm = g.__annotations__['x']\nm.mean = len\n",
    'a parameter named like a self': 'from collections import Counter\nclass A:\n    def m(c): pass\ndef g(c): c.most_common = len\ng(Counter)\n',
    'an unbound method': 'from collections import Counter\nclass A:\n    def m(self): self.most_common = len\nA.m(Counter)\n',
    'an unbound method by an alias': 'from collections import Counter\nclass A:\n    def m(self): self.most_common = len\nb = [A]\nb[0].m(Counter)\n',
    'an unbound method by its decorator': 'from collections import Counter\ndef keep(fn):\n    fn(Counter)\n    return fn\nclass A:\n    @keep\n    def m(self): self.most_common = len\n',
    'a method in its class': 'from collections import Counter\nclass A:\n    def m(self): self.most_common = len\n    m(Counter)\n',
    'the getter of a property': 'from collections import Counter\nclass A:\n    @property\n    def m(self): self.most_common = len\nA.m.fget(Counter)\n',
    'what a method wraps': 'from collections import Counter\nimport functools\nclass A:\n    @functools.lru_cache\n    def m(self): self.most_common = len\nA().m.__wrapped__(Counter)\n',
    'another self': 'from collections import Counter\nclass A:\n    def m(self):\n        def g(self): self.most_common = len\n        g(Counter)\nA().m()\n',
    'a self bound again': 'from collections import Counter\nclass A:\n    def m(self):\n        for self in [Counter]: self.most_common = len\nA().m()\n',
    'a parameter named like a function': 'from collections import Counter\ndef A(): pass\ndef g(A): A.most_common = len\ng(Counter)\n',
    'a loop over the name of a function': 'from collections import Counter\ndef A(): pass\nfor A in [Counter]: A.most_common = len\n',
    'a class that its decorator replaces': 'from collections import Counter\ndef other(c): return Counter\n@other\nclass A: pass\nA.most_common = len\n',
    'a data class of others': 'import dataclasses\nfrom collections import Counter\ndataclasses.dataclass(repr=True, init=True)(Counter)\n',
    'a data class by a decorator': 'import functools, dataclasses, statistics\nfrom collections import UserList\ndef other(c): return UserList\n@dataclasses.dataclass\n@other\nclass A: pass\n',
    'a wrapper of others': 'import functools\nfrom statistics import mean\ndef mine(): pass\nmine.x = 1\nw = functools.wraps(mine)\nw(mean)\n',
    'a class in a row of bases': 'from enum import Enum\nclass A(Enum):\n    X = 1\nclass B:\n    name = 1\nc = A.mro()[1]\nc.name = 3\n',
    'the class of an instance': 'from collections import Counter\nclass A:\n    most_common = 1\nc = type(Counter())\nc.most_common = len\n',
    'the class of an instance by its attribute': 'from collections import Counter\nclass A:\n    most_common = 1\nc = Counter().__class__\nc.most_common = len\n',
    'the class of an instance in its own words': 'from collections import Counter\nclass A:\n    def m(self): self.__class__.most_common = len\nA.m(Counter())\n',
    'a table of the library': 'import copy\nd = copy.dispatch_table\nd[list] = 3\n',
    'the given module': 'class A:\n    floor = 1\ndef f(m): m.floor = len\n',
    'the given module, by itself': 'class A:\n    def __init__(self): self.floor = 1\ndef f(m): m.floor = len\n',
    'the given class of tests': 'class A:\n    assertEqual = 1\ndef f(m): m.assertEqual = len\n',
    'a base of tests': 'class A:\n    def __init_subclass__(cls): cls.assertEqual = len\n',
    'a base of tests that asserts': 'class A:\n    def assertEqual(self, *a): pass\n',
    'a name of the language, inside': 'def g():\n    global len\n    len = max\ng()\n',
    'a name of the language, below': 'if True:\n    def len(x): return 3\n',
    'a name of the language, imported': 'from operator import add as sum\n',
    'a getter for the module': 'def __getattr__(name): return 1\n',
    'a dict that is another': 'import functools\nclass A:\n    @property\n    def __dict__(self): return {}\n    @functools.cached_property\n    def x(self): return 1\n',
    'memory': "import numpy as np\nclass A:\n    @property\n    def __array_interface__(self): return {'data': (id(3), False), 'shape': (4,), 'typestr': '<i8', 'version': 3}\nnp.asarray(A())[2] = 4\n",
    "a pickle of numpy's": "import io\nimport numpy as np\nnp.load(io.BytesIO(b''), allow_pickle=True)\n",
    "a pickle of pandas'": "import io\nimport pandas as pd\npd.read_pickle(io.BytesIO(b''))\n",
    'text that pandas evaluates': "import pandas as pd\npd.DataFrame().eval('1')\n",
    'what numpy is made of': 'import numpy as np\nnp.random.mtrand.sys\n',
    "ctypes of numpy's": 'import numpy as np\nnp.zeros(1).ctypes._ctypes.pythonapi\n',
    'the type of a field': 'from dataclasses import dataclass, fields\nfrom collections import Counter\n@dataclass\nclass D:\n    most_common: Counter\nc = fields(D)[0].type\nc.most_common = len\n',
    'the object of an error': 'import collections\nclass A:\n    most_common = 1\ntry:\n    collections.Counter.nope\nexcept AttributeError as e:\n    c = e.obj\nc.most_common = len\n',
    'a decorator under another name': 'from functools import partial as cache\nfrom collections import Counter\ndef keep(x, fn): fn(Counter)\nclass A:\n    @cache(keep, 1)\n    def m(self): self.most_common = len\nA.m\n',
    'a decorator that calls': 'import functools\nfrom dataclasses import dataclass\nfrom collections import UserList\n@dataclass\n@functools.partial(lambda c: UserList)\nclass A: pass\n',
    'a method of the module': 'from collections import Counter\nclass A:\n    global m\n    def m(self): self.most_common = len\nm(Counter)\n',
    'a method in a table': "from collections import Counter\nT = {}\nclass A:\n    def m(self): self.most_common = len\n    T['m'] = m\nT['m'](Counter)\n",
    'a new object of another class': 'from collections import Counter\nclass A:\n    def __new__(cls):\n        cls.most_common = len\nclass B(A):\n    def __new__(cls): return super().__new__(Counter)\nB()\n',
    'a cached thief': 'from functools import lru_cache\nfrom collections import Counter\ndef keep(fn): fn(Counter)\nclass A:\n    @lru_cache(maxsize=keep)\n    def m(self): self.most_common = len\n',
    'a decorator that sets its argument': 'from dataclasses import dataclass\nfrom collections import UserList\ntry:\n    @dataclass(UserList)\n    def g(): pass\nexcept TypeError:\n    pass\n',
    "a class to compare with": "from collections import Counter\nclass E:\n    most_common = 1\n    def __eq__(self, other): other.most_common = len\nE() == type(Counter())\n",
    "the owner of a descriptor": "from collections import Counter\nclass D:\n    def __set_name__(self, owner, name): owner.m(Counter)\nclass A:\n    def m(self): self.most_common = len\n    x = D()\n",
    "the class of an item": "from collections import Counter\nclass A:\n    def m(self): self.most_common = len\n    def __class_getitem__(cls, n): cls.m(Counter)\nA[1]\n",
    "the class of an exception": "from collections import Counter\nclass Err(Exception):\n    def m(self): self.most_common = len\nclass C:\n    def __enter__(self): pass\n    def __exit__(self, kind, *rest):\n        kind.m(Counter)\n        return True\nwith C(): raise Err\n",
    "the start of an exception": "from collections import Counter\nclass Err(Exception):\n    def __init__(self): self.most_common = len\nclass C:\n    def __enter__(self): pass\n    def __exit__(self, kind, *rest):\n        kind.__init__(Counter)\n        return True\nwith C(): raise Err\n",
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_an_answer_that_may_change_what_others_use_is_not_plain(name: str) -> None:
    assert not is_plain_answer(CHANGES[name])


PLAIN = {
    "an object": "class Node:\n    def __init__(self, value):\n        self.value = value\n        self.next = None\ndef push(head, value):\n    node = Node(value)\n    node.next = head\n    return node\n",
    "a counter in its class": "class A:\n    made = 0\n    def __init__(self):\n        self.__class__.made += 1\n    @classmethod\n    def reset(cls): cls.made = 0\n",
    "a single object": "class A:\n    _only = None\n    def __new__(cls):\n        if cls._only is None:\n            cls._only = super().__new__(cls)\n        return cls._only\n",
    "a property": "class A:\n    def __init__(self): self._x = 0\n    @property\n    def x(self): return self._x\n    @x.setter\n    def x(self, value): self._x = value\n",
    "a data class": "from dataclasses import dataclass, field\n@dataclass(order=True)\nclass P:\n    x: int\n    seen: list = field(default_factory=list)\n",
    "operators": "class V:\n    def __init__(self, x): self.x = x\n    def __add__(self, other): return V(self.x + other.x)\n    __radd__ = __add__\n    def __eq__(self, other): return isinstance(other, V) and self.x == other.x\n",
    "a decorator": "import functools\ndef counted(fn):\n    @functools.wraps(fn)\n    def inner(*args):\n        inner.calls += 1\n        return fn(*args)\n    inner.calls = 0\n    return inner\n",
    "a base of its own": "class A:\n    def __init__(self, n): self.n = n\nclass B(A):\n    def __init__(self, n):\n        A.__init__(self, n)\n        self.m = n\n",
    "comparisons of classes": "class A:\n    def __init__(self, x): self.x = x\n    def __eq__(self, other): return type(self) == type(other) and type(self.x) in (int, float)\n",
    "a context": "class C:\n    def __init__(self): self.n = 0\n    def __enter__(self):\n        self.n += 1\n        return self\n    def __exit__(self, kind, error, where): return kind is not None and issubclass(kind, KeyError)\n",
    "a pattern": "class P:\n    __match_args__ = ('x',)\n    def __init__(self, x): self.x = x\ndef f(p):\n    match p:\n        case P(x): return x\n",
    "modules in modules": "import os.path\nimport collections.abc\nfrom os import path\nimport json\ndef f(x):\n    if isinstance(x, collections.abc.Mapping): return json.dumps(x)\n    return os.path.join(x, path.basename(x))\n",
    "a cache": "from functools import lru_cache\nfrom collections import Counter, defaultdict\n@lru_cache(maxsize=None)\ndef f(n): return n\ndef g(xs): return defaultdict(Counter)\n",
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_what_honest_answers_do_is_plain(name: str) -> None:
    assert is_plain_answer(PLAIN[name])
