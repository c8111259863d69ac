//! Reads PostgreSQL's own answers from `fixtures/keys/`; for tests only.

use serde_json::Value;

/// The whole file.
pub(super) fn text(name: &str) -> String {
    let path = format!("{}/fixtures/keys/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Its lines of JSON.
pub(super) fn lines(name: &str) -> Vec<Value> {
    text(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The text a line is about, spelled out or described by `gen`.
pub(super) fn input(line: &Value) -> String {
    if let Some(text) = line.get("in") {
        return text.as_str().unwrap().to_owned();
    }
    let made = |name: &str| line["gen"][name].as_str().unwrap();
    let count = line["gen"]["count"].as_u64().unwrap();
    let unit = made("unit").repeat(usize::try_from(count).unwrap());
    [made("prefix"), &unit, made("suffix")].concat()
}
