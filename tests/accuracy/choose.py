"""Which kernel rows check the clock: a rule over what a row says of itself, never over what Trena predicts for it.

    python tests/accuracy/choose.py > tests/accuracy/validation.csv

A row is chosen when all of this holds:
  * it is a kernel row of python/trena/accuracy/measurements.csv whose kernel is public or described (reproducible
    `yes` or `partly`), with a stated shape, on one physical core;
  * it was timed on the device. Host-timed rows (TSCI, YK, and those that say so) hold a framework's dispatch of up to
    milliseconds; bounds of regression tests (NKIT, CS149-029, -030) are not measurements;
  * it is one kernel: not a graph of a model (DST), not a mean over kernels (AOB-015...018), not an unpublished plan of
    an optimiser (AOB), not code that only a compiler has written (`compiler`, `HLO`, `neuronx-cc`, `PyTorch`);
  * it is not one of the rows that some figure of the clock was chosen on (MMOPT, PRC: docs/accuracy.md);
  * its quantity is the time of the kernel, a rate over it, an engine's or the DMA's active time, or bytes of HBM.
    All times and rates are taken; of active times and bytes, of which one profile has up to eight, those whose
    SHA-256 of the id ends in an even digit.
"""

import csv
import hashlib
import pathlib
import re

ROWS = pathlib.Path(__file__).resolve().parents[2] / "python" / "trena" / "accuracy" / "measurements.csv"
FAMILIES = {"AO", "CS149", "DOC", "MAMBA", "NAT", "PAN", "PROF", "RISH"}
NO_SHAPE = re.compile(r"see workload source|not stated|see tools|as 300 s rows", re.I)
NOT_ONE_CORE = re.compile(r"both (neuron)?cores|2 cores|_agg", re.I)
HOST = re.compile(r"host-timed|host\)|wall|graph replay|bound|threshold", re.I)
COMPILED = re.compile(r"compiler|HLO|neuronx-cc|PyTorch|nrtpy|duty|near allocation limit", re.I)
HEADLINE = re.compile(r"latency|total time|total_time$|^duration|throughput|bandwidth|MFU|^tile rate|^percent", re.I)
COUNTER = re.compile(r"active|hbm_(read|write)_bytes|spill", re.I)


def chosen(row: dict) -> str | None:
    """`time` or `counter`, or None for a row that is not chosen."""
    if row["level"] != "kernel" or row["reproducible"] not in ("yes", "partly"):
        return None
    if row["id"].rsplit("-", 1)[0] not in FAMILIES or NO_SHAPE.search(row["shape"]):
        return None
    words = f"{row['workload']} | {row['shape']} | {row['metric']}"
    if row["unit"] == "" or NOT_ONE_CORE.search(words) or HOST.search(words) or COMPILED.search(words):
        return None
    if HEADLINE.search(row["metric"]) and "active time (max" not in row["metric"]:
        return "time"
    even = int(hashlib.sha256(row["id"].encode()).hexdigest()[-1], 16) % 2 == 0
    return "counter" if COUNTER.search(row["metric"]) and even else None


def main() -> None:
    print("id,use")
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            use = chosen(row)
            if use:
                print(f"{row['id']},{use}")


if __name__ == "__main__":
    main()
