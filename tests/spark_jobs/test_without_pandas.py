"""Libraries that would bring pandas along are imported without it, and nobody else misses it."""

import subprocess
import sys

from tests.conftest import PROJECT

SCRIPT = """
import sys
from spark_jobs.without_pandas import WithoutPandas

sys.meta_path.insert(0, WithoutPandas())
import spark_jobs.adbc_session
sys.meta_path.pop(0)
assert "pandas" not in sys.modules, "it is imported all the same"
import pandas, pyarrow

assert isinstance(pyarrow.table({"a": [1]}).to_pandas(), pandas.DataFrame)
assert pyarrow.array(pandas.Series([1.0, None])).to_pylist() == [1.0, None]
"""


def test_pandas_is_left_out_once_and_is_there_for_whoever_asks_later() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=PROJECT,
        env={"PYTHONPATH": f"{PROJECT}:{PROJECT / 'plugins'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
