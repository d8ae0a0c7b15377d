"""Trains a model in a sandbox: install requirements, upload data, run code, fetch the result.

    pip install picod
    PICOD_ACCESS_TOKEN=... python ml_workflow.py --host 127.0.0.1 --port 49983

The sandbox needs Python 3.9 to 3.13 with the venv module and a way to a package index. The data follow a known relation, so
the program can check that the model has found it, and exits with 1 if it has not.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import pickle
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from picod import CommandError, PicoDClient, PicoDError

REQUIREMENTS = Path(__file__).with_name("ml_requirements.txt")

# price = 40 + 3 * area - 1.5 * age + noise; the rooms have no influence.
INTERCEPT, AREA, AGE = 40.0, 3.0, -1.5
NOISE_DEVIATION = 12.0
FEATURES = ["area", "age", "rooms"]
PROBE = {"area": 100.0, "age": 10.0, "rooms": 3.0}
TOLERANCE = 0.02

TRAIN = """
import json, pickle
import pandas
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

data = pandas.read_csv("train.csv")
features, price = data[["area", "age", "rooms"]], data["price"]
train_x, test_x, train_y, test_y = train_test_split(features, price, test_size=0.2, random_state=0)
model = LinearRegression().fit(train_x, train_y)
with open("model.pkl", "wb") as file:
    pickle.dump(model, file)
print(json.dumps({
    "rows": len(data),
    "r2": r2_score(test_y, model.predict(test_x)),
    "intercept": model.intercept_,
    "coefficients": dict(zip(features.columns, model.coef_)),
}))
"""

PREDICT = """
import json, os, pickle
import pandas

with open("model.pkl", "rb") as file:
    model = pickle.load(file)
print(model.predict(pandas.DataFrame([json.loads(os.environ["PROBE"])]))[0])
"""


def write_training_data(path: Path, rows: int) -> float:
    """Writes the same rows every time and returns the R² that knowledge of the relation reaches on them."""
    numbers = random.Random(20_240_601)
    prices, residuals = [], []
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*FEATURES, "price"])
        for _ in range(rows):
            area, age, rooms = numbers.uniform(20, 200), numbers.uniform(0, 80), numbers.randint(1, 8)
            noise = numbers.gauss(0, NOISE_DEVIATION)
            price = INTERCEPT + AREA * area + AGE * age + noise
            writer.writerow([f"{area:.3f}", f"{age:.3f}", rooms, f"{price:.3f}"])
            prices.append(price)
            residuals.append(noise)
    mean = sum(prices) / rows
    return 1 - sum(noise**2 for noise in residuals) / sum((price - mean) ** 2 for price in prices)


def make_workdir(client: PicoDClient, wanted: str | None) -> str:
    """Makes a directory that was not there before, so that the clean-up removes nothing but what this program made."""
    if wanted is None:
        return client.execute_command("mktemp -d /tmp/ml-workflow.XXXXXX").strip()
    client.execute_command('mkdir -- "$WANTED"', env={"WANTED": wanted})
    return wanted


def create_venv(client: PicoDClient, python: str, workdir: str) -> str:
    """Makes a virtual environment in the sandbox and returns its interpreter."""
    result = client.execute(argv=[python, "-m", "venv", f"{workdir}/venv"], timeout=120)
    if result.exit_code == 127:
        raise SystemExit(f"the sandbox has no {python}; name another one with --python")
    if not result.ok:
        raise SystemExit(
            f"`{python} -m venv` failed in the sandbox (on Debian and Ubuntu: apt-get install python3-venv):\n"
            f"{result.stdout}{result.stderr}"
        )
    return f"{workdir}/venv/bin/python"


def predict_locally(model_path: Path) -> float | None:
    """Loads the model here; None when this Python has no scikit-learn and pandas."""
    try:
        importlib.import_module("sklearn")
        pandas: Any = importlib.import_module("pandas")
    except ImportError:
        return None
    # Unpickling runs code: right here only because this program made the model itself.
    model = pickle.loads(model_path.read_bytes())
    return float(model.predict(pandas.DataFrame([PROBE]))[0])


def run(client: PicoDClient, workdir: str, rows: int, python: str) -> bool:
    """Goes through the workflow and says whether the model found the relation."""
    with tempfile.TemporaryDirectory() as directory:
        local = Path(directory)

        print("Installing requirements", flush=True)
        client.upload_file(REQUIREMENTS, f"{workdir}/requirements.txt")
        interpreter = create_venv(client, python, workdir)
        client.execute_command(
            "venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt",
            timeout=900,
            cwd=workdir,
        )

        print(f"Uploading train.csv ({rows} rows)", flush=True)
        reachable_r2 = write_training_data(local / "train.csv", rows)
        client.upload_file(local / "train.csv", f"{workdir}/train.csv")

        print("Training", flush=True)
        report = json.loads(client.run_code("python", TRAIN, timeout=300, interpreter=interpreter, cwd=workdir))
        coefficients = report["coefficients"]
        print(f"R² = {report['r2']:.4f} on held-out rows; the relation itself reaches {reachable_r2:.4f} on all rows")
        print(f"price = {report['intercept']:.2f} + " + " + ".join(f"{coefficients[name]:.3f} * {name}" for name in FEATURES))

        print("Downloading model.pkl", flush=True)
        client.download_file(f"{workdir}/model.pkl", local / "model.pkl")
        expected = INTERCEPT + AREA * PROBE["area"] + AGE * PROBE["age"]
        prediction = predict_locally(local / "model.pkl")
        where = "loaded here, from the downloaded file"
        if prediction is None:
            environment = {"PROBE": json.dumps(PROBE)}
            prediction = float(client.run_code("python", PREDICT, interpreter=interpreter, cwd=workdir, env=environment))
            where = "loaded in the sandbox; to load it here, install scikit-learn and pandas"
        print(f"Prediction {prediction:.2f}, relation {expected:.2f} (model {where})")

    return (
        report["rows"] == rows
        and abs(report["r2"] - reachable_r2) < TOLERANCE
        and abs(coefficients["area"] - AREA) < TOLERANCE * abs(AREA)
        and abs(coefficients["age"] - AGE) < TOLERANCE * abs(AGE)
        and abs(prediction - expected) < TOLERANCE * expected
    )


def main() -> int:
    """Parses the arguments, runs the workflow and cleans up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="address of the daemon (default: %(default)s)")
    parser.add_argument("--port", type=int, default=49983, help="port of the daemon (default: %(default)s)")
    parser.add_argument("--access-token", help="token of the daemon (default: environment PICOD_ACCESS_TOKEN)")
    parser.add_argument("--rows", type=int, default=50_000, help="rows of training data (default: %(default)s)")
    parser.add_argument("--workdir", help="directory in the sandbox, which must not exist yet (default: a new one in /tmp)")
    parser.add_argument("--python", default="python3", help="Python of the sandbox (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the directory in the sandbox")
    options = parser.parse_args()

    with PicoDClient(options.host, options.port, options.access_token) as client:
        try:
            workdir = make_workdir(client, options.workdir)
            try:
                found = run(client, workdir, options.rows, options.python)
            finally:
                if options.keep:
                    print(f"Kept {workdir}")
                else:
                    client.execute(argv=["rm", "-rf", "--", workdir], timeout=120)
        except (CommandError, PicoDError) as error:
            print(error, file=sys.stderr)
            return 1
    print("The model found the relation" if found else "The model did NOT find the relation")
    return 0 if found else 1


if __name__ == "__main__":
    raise SystemExit(main())
