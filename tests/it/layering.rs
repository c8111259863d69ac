//! Who may import whom: the picture of the modules, held against the sources.
//!
//! ```text
//! 5  report lab            <- everything below
//! 4  build search          <- everything below
//! 3  catalog               <- archive gin opclass posting tid …
//! 2  tuplesort             <- posting
//!    gin                   <- posting opclass
//! 1  posting queue archive opclass
//! 0  error tid budget tempspace mapped document      (each may use those before it)
//! ```
//!
//! Level 0 is open to all. [`MODULES`] is the same picture, line for line. A file is read
//! as text: comments and `#[cfg(test)]` modules do not count; `crate::Name` of a
//! re-export in `lib.rs` counts as the module it comes from. The program (`src/bin`) is
//! a crate of its own and sees the public API only, the compiler sees to that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which modules of level 1 and above a module may use; level 0 is open to all of these.
enum Uses {
    /// Level 0: what stands before it in [`MODULES`].
    Before,
    /// These.
    Only(&'static [&'static str]),
    /// Everything of lower levels.
    Below,
}

use Uses::{Before, Below, Only};

/// Level, module, what it may use; lowest first.
const MODULES: &[(u8, &str, Uses)] = &[
    (0, "error", Before),
    (0, "tid", Before),
    (0, "budget", Before),
    (0, "tempspace", Before),
    (0, "mapped", Before),
    (0, "document", Before),
    (1, "posting", Only(&[])),
    (1, "queue", Only(&[])),
    (1, "archive", Only(&[])),
    (1, "opclass", Only(&[])),
    (2, "tuplesort", Only(&["posting"])),
    (2, "gin", Only(&["posting", "opclass"])),
    (3, "catalog", Below),
    (4, "build", Below),
    (4, "search", Below),
    (5, "report", Below),
    (5, "lab", Below),
];

/// `None`, or why `module` may not use `other`.
fn objection(module: &str, other: &str) -> Option<String> {
    let place = |name: &str| MODULES.iter().position(|(_, known, _)| *known == name);
    let Some(mine) = place(module) else {
        return Some(format!("`{module}` has no place in the picture"));
    };
    let Some(its) = place(other) else {
        return Some(format!("`{other}` has no place in the picture"));
    };
    let (level, _, uses) = &MODULES[mine];
    let (lower, _, _) = &MODULES[its];
    let allowed = match uses {
        Before => its <= mine,
        Only(names) => *lower == 0 || names.contains(&other) || its == mine,
        Below => lower < level || its == mine,
    };
    (!allowed).then(|| format!("`{module}` (level {level}) uses `{other}` ({lower})"))
}

/// The text without comments that fill a line, and without `#[cfg(test)]` modules: one
/// with a body stands at the end of its file, one without is a file of its own, whose
/// name is returned.
fn product_code(text: &str) -> (String, Vec<String>) {
    let mut code = String::new();
    let mut test_files = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let item = lines.next().unwrap_or_default();
            let item =
                item.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            match item.strip_prefix("mod ") {
                Some(module) if module.ends_with('{') => break,
                Some(module) => {
                    test_files.push(module.trim_end_matches(';').to_owned());
                    continue;
                }
                None => code.push_str(item),
            }
        } else if !line.trim_start().starts_with("//") {
            code.push_str(line);
        }
        code.push('\n');
    }
    (code, test_files)
}

/// The names that directly follow `crate::`, in paths and in `use crate::{…}`.
fn crate_names(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let path = &code[at + "crate::".len()..];
        match path.strip_prefix('{') {
            Some(group) => names.extend(group_heads(group)),
            None => names.extend(first_name(path)),
        }
    }
    names
}

/// First names of the members of a `{…}` group, whose `{` has been read.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads, mut member) = (1, Vec::new(), 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || depth == 1 && c == ',' {
            heads.extend(first_name(group[member..at].trim_start()));
            member = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

fn first_name(path: &str) -> Option<String> {
    let name = |c: char| c.is_alphanumeric() || c == '_';
    let end = path.find(|c| !name(c)).unwrap_or(path.len());
    (end > 0).then(|| path[..end].to_owned())
}

/// Longest chain of `super::` in the code.
fn supers(code: &str) -> usize {
    let longer = |n: &usize| code.contains(&"super::".repeat(*n));
    (1..).take_while(longer).last().unwrap_or(0)
}

/// What is wrong with one file, given by its path below `src`.
fn violations(
    file: &str,
    code: &str,
    reexports: &BTreeMap<String, String>,
) -> Vec<String> {
    let parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    let module = parts[0];
    let depth = parts.iter().filter(|part| **part != "mod").count();
    let mut found: Vec<String> = crate_names(code)
        .iter()
        .filter_map(|name| objection(module, reexports.get(name).unwrap_or(name)))
        .map(|objection| format!("src/{file}: {objection}"))
        .collect();
    if supers(code) >= depth {
        found.push(format!("src/{file}: leaves its module by super::, write crate::"));
    }
    found
}

/// What `lib.rs` re-exports: name → module.
fn reexports(lib: &str) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    for statement in lib.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let Some((module, rest)) = statement.split_once("::") else { continue };
        let path = rest.rsplit("::").next().unwrap_or(rest);
        let names = path.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        for name in names.filter(|name| !name.is_empty()) {
            map.insert(
                name.to_owned(),
                module.trim_start_matches("crate::").to_owned(),
            );
        }
    }
    map
}

/// Every `.rs` file below `directory` except the program's.
fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("src/bin") {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn modules_import_lower_levels_only() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    files.sort();
    let reexports = reexports(&fs::read_to_string(src.join("lib.rs")).unwrap());

    let mut code = BTreeMap::new();
    let mut test_files = BTreeSet::new();
    for path in files {
        let (text, tests) = product_code(&fs::read_to_string(&path).unwrap());
        let file = path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        let module_directory = match path.file_stem().unwrap().to_str().unwrap() {
            "mod" | "lib" => path.with_file_name(""),
            _ => path.with_extension(""),
        };
        for test in tests {
            test_files.insert(module_directory.join(&test).with_extension("rs"));
            test_files.insert(module_directory.join(&test).join("mod.rs"));
        }
        code.insert(file, text);
    }
    let found: Vec<String> = code
        .iter()
        .filter(|(file, _)| *file != "lib.rs" && !test_files.contains(&src.join(file)))
        .flat_map(|(file, code)| violations(file, code, &reexports))
        .collect();
    assert!(code.len() > 10, "the sources were not found: {code:?}");
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn every_module_of_the_library_has_a_place_in_the_picture() {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let lib = fs::read_to_string(lib).unwrap();
    let declared = lib.lines().filter_map(|line| {
        line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')
    });
    let homeless: Vec<&str> = declared
        .filter(|module| !MODULES.iter().any(|(_, known, _)| known == module))
        .collect();
    assert_eq!(homeless, Vec::<&str>::new());
}

#[test]
fn forbidden_imports_are_found_in_every_spelling() {
    let reexports =
        reexports("pub use build::Builder;\npub use error::{Error, Result};");
    let of =
        |file: &str, code: &str| violations(file, &product_code(code).0, &reexports);
    let upward = |file: &str, code: &str| {
        let found = of(file, code);
        assert_eq!(found.len(), 1, "{code}: {found:?}");
        assert!(found[0].starts_with(&format!("src/{file}: ")), "{found:?}");
    };
    upward("gin/page.rs", "use crate::build::stats;");
    upward("gin/page.rs", "use crate::{tid::Tid, build::{stats, Builder}};");
    upward("gin/page.rs", "use crate::{\n    posting,\n    tuplesort as sort,\n};");
    upward("gin/mod.rs", "fn f() { crate::catalog::open(); }");
    upward("gin/mod.rs", "use super::posting;");
    upward("gin/page.rs", "use super::super::posting;");
    upward("tid.rs", "use crate::tempspace::TempUsage;");
    upward("posting.rs", "use crate::queue;");
    upward("archive/mbox.rs", "use crate::Builder;");
    upward("search/mod.rs", "use crate::build;");
    upward("nowhere.rs", "use crate::tid::Tid;");
    upward("build/mod.rs", "use crate::nowhere;");

    let fine =
        |file: &str, code: &str| assert_eq!(of(file, code), Vec::<String>::new());
    fine("gin/page.rs", "use crate::{tid::Tid, error::{Error, Result}, Result};");
    fine("gin/page.rs", "use super::layout;\nuse crate::gin::layout;");
    fine("gin/page.rs", "// use crate::build;\n/// [`crate::build`]");
    fine("tid.rs", "#[cfg(test)]\nmod tests {\n    use crate::build;\n}");
    fine("tempspace.rs", "use crate::budget::Bytes;");
    fine("report/html.rs", "use crate::{build::stats, catalog, search};");
    fine("gin/page.rs", "use other_crate::build;");
}
