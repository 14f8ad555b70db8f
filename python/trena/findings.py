"""What the checks found: as objects, as text, as JSON (versioned) and as SARIF 2.1.0.

Most come from src/trena/check/ through Run.findings, some from instructions that were refused while
`trena check` went on, and a few from here (outputs that were never written). docs/check.md tells them apart.
"""

from __future__ import annotations

import dataclasses
import linecache
import os

from trena import errors

JSON_VERSION = 1
SARIF_VERSION = "2.1.0"
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclasses.dataclass
class Finding:
    """One mistake.

    id, kind, severity           the rule; the exception class it belongs to; "error" or "warning"
    rule, here, limit, device, fix   as in trena.errors.Error
    file, line                   the user's line
    other_file, other_line       the line it collides with; "" and 0 when there is none
    kernel, core, count          where it happened, and how often these two lines met
    """

    id: str
    kind: str = "Hazard"
    severity: str = "warning"
    rule: str = ""
    here: str = ""
    limit: str = ""
    device: str = ""
    fix: str = ""
    file: str = ""
    line: int = 0
    other_file: str = ""
    other_line: int = 0
    kernel: str = ""
    core: int = 0
    count: int = 1

    @property
    def place(self) -> tuple:
        return (self.id, self.file, self.line, self.other_file, self.other_line)

    def as_error(self) -> errors.Error:
        """The same as an exception, for its text."""
        return getattr(errors, self.kind)(self.rule, id=self.id, here=self.here, limit=self.limit,
                                          device=self.device, fix=self.fix, file=self.file, line=self.line)

    def as_dict(self) -> dict:
        data = {key: getattr(self, key) for key in
                ("id", "kind", "severity", "rule", "here", "limit", "device", "fix", "kernel", "core", "count")}
        data["at"] = {"file": self.file, "line": self.line} if self.line else None
        data["other"] = {"file": self.other_file, "line": self.other_line} if self.other_line else None
        return data


def from_core(entries, kernel: str) -> list[Finding]:
    """Of the dicts that the core hands out."""
    found = []
    for entry in entries:
        at, other = entry.pop("at"), entry.pop("other")
        found.append(Finding(**entry, kernel=kernel, file=at["file"] if at else "", line=at["line"] if at else 0,
                             other_file=other["file"] if other else "", other_line=other["line"] if other else 0))
    return found


def from_error(error: errors.Error, kernel: str = "") -> Finding:
    return Finding(id=error.id, kind=type(error).__name__, severity="error", rule=error.rule, here=error.here,
                   limit=error.limit, device=error.device, fix=error.fix, file=error.file, line=error.line,
                   kernel=kernel)


def unwritten_output(tensor, kernel: str) -> Finding:
    """`output-unwritten`: the kernel returns bytes that nobody wrote."""
    file, line = tensor.made_at
    return Finding(
        kind="UnwrittenRead", id="output-unwritten", kernel=kernel, file=file, line=line,
        rule="a kernel writes every byte of what it returns",
        here=f"{kernel} returns {tensor.name or 'a tensor'} of shape {list(tensor.shape)}, of which a part was "
             "never written",
        device="the caller gets whatever the memory held before",
        fix="write all of it, or return only the part that was written",
    )


def merged(findings: list[Finding]) -> list[Finding]:
    """One per rule and pair of lines, in the order in which they came; errors keep their first text."""
    result: dict[tuple, Finding] = {}
    for finding in findings:
        known = result.setdefault(finding.place, dataclasses.replace(finding, count=0))
        known.count += finding.count
    return list(result.values())


# ---- For people --------------------------------------------------------------------------------------


def _line(file: str, line: int) -> str:
    source = linecache.getline(file, line).strip() if line else ""
    return f"  {errors.short_path(file)}:{line}" + (f"   {source}" if source else "")


def text(finding: Finding) -> str:
    """In the shape of every complaint of Trena, with the other line and how often it happened."""
    rows = errors.render(finding.as_error()).split("\n")
    extra = []
    if finding.other_line:
        extra.append(f"  {'with':<8}{_line(finding.other_file, finding.other_line)[1:]}")
    if finding.count > 1:
        extra.append(f"  {'times':<8} {finding.count:,}")
    head = f"{finding.severity}: " + rows[0]
    at = next((k for k, row in enumerate(rows) if row.startswith("  rule")), len(rows))
    return "\n".join([head, *rows[1:at], *rows[at:-1], *extra, rows[-1]])


def summary_line(finding: Finding) -> str:
    """For the summary of a run: id and both lines."""
    def place(file, line):
        return f"{os.path.basename(file)}:{line}"

    pair = f" with {place(finding.other_file, finding.other_line)}" if finding.other_line else ""
    times = f", {finding.count:,} times" if finding.count > 1 else ""
    where = f" at {place(finding.file, finding.line)}" if finding.line else ""
    return f"{finding.id}{where}{pair}{times}"


# ---- For machines ------------------------------------------------------------------------------------


def as_json(findings: list[Finding], script: str) -> dict:
    from trena import __version__

    return {"format": "trena-check", "version": JSON_VERSION, "trena": __version__, "script": script,
            "findings": [finding.as_dict() for finding in findings]}


def _location(file: str, line: int, message: str = "") -> dict:
    relative = errors.short_path(file).replace(os.sep, "/")
    inside = not os.path.isabs(relative) and not relative.startswith("../")
    artifact = {"uri": relative, "uriBaseId": "%SRCROOT%"} if inside else {
        "uri": "file://" + os.path.abspath(file).replace(os.sep, "/")}
    location = {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}
    if message:
        location["message"] = {"text": message}
    return location


def as_sarif(findings: list[Finding], explanations: dict[str, str]) -> dict:
    """SARIF 2.1.0, as code hosts take it. `explanations`: id -> text of docs/errors.md."""
    from trena import __version__

    ids = sorted({finding.id for finding in findings})
    first = {finding.id: finding for finding in reversed(findings)}
    rules = [{"id": name, "shortDescription": {"text": first[name].rule or name},
              "fullDescription": {"text": explanations.get(name, first[name].rule or name)},
              "help": {"text": first[name].fix or f"trena explain {name}"},
              "defaultConfiguration": {"level": first[name].severity}} for name in ids]
    results = []
    for finding in findings:
        parts = [finding.here or finding.rule, f"limit: {finding.limit}" if finding.limit else "",
                 f"fix: {finding.fix}" if finding.fix else ""]
        result = {"ruleId": finding.id, "ruleIndex": ids.index(finding.id), "level": finding.severity,
                  "message": {"text": "; ".join(part for part in parts if part)},
                  "properties": {"kernel": finding.kernel, "core": finding.core, "count": finding.count}}
        if finding.line:
            result["locations"] = [_location(finding.file, finding.line)]
        if finding.other_line:
            result["relatedLocations"] = [_location(finding.other_file, finding.other_line, "collides with this line")]
        results.append(result)
    return {"$schema": SARIF_SCHEMA, "version": SARIF_VERSION,
            "runs": [{"tool": {"driver": {"name": "trena", "version": __version__, "rules": rules}},
                      "columnKind": "unicodeCodePoints", "results": results}]}
