//! JSON texts and jsonpaths from a seed, valid ones and others.
//!
//! Names and values come from small sets, so that paths find something and containment
//! holds now and then; among them are what limits and escapes turn on.

/// A seeded source (xorshift with a multiplication).
pub struct Random(u64);

impl Random {
    /// `GINMILL_SEED`, a number, makes it another run.
    pub fn new(seed: u64) -> Random {
        let run = std::env::var("GINMILL_SEED").ok().and_then(|run| run.parse().ok());
        let seed = seed + 100 * run.unwrap_or(0_u64);
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let mixed = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D);
        usize::try_from((mixed >> 33) % limit as u64).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    pub fn name(&mut self) -> String {
        match self.below(12) {
            0..=8 => self.pick(&["a", "b", "c", "id", "key", "value", "é"]).to_owned(),
            9 => {
                self.pick(&["", "aa", "A", "to", "size", "中", "a b", "😀"]).to_owned()
            }
            // Around the length at which keys are hashed.
            10 => "k".repeat(120 + self.below(12)),
            _ => "é".repeat(60 + self.below(5)),
        }
    }

    /// A number as JSON may write it.
    fn number(&mut self) -> String {
        match self.below(14) {
            0..=5 => self.below(4).to_string(),
            6 => format!("-{}", self.below(3)),
            7 => self.pick(&["1.0", "1.50", "0.5", "-0", "-0.00", "2.50e1"]).to_owned(),
            8 => format!("{}e{}", self.below(200), self.below(300)),
            9 => format!("{}.{}E-{}", self.below(9), self.below(999), self.below(300)),
            10 => {
                let digits = 1 + self.below(40);
                (0..digits).map(|_| char::from(b'1' + self.below(9) as u8)).collect()
            }
            11 => format!("0.{}{}", "0".repeat(self.below(20)), self.below(9999)),
            12 => format!("1{}", "0".repeat(self.below(140))),
            _ => self
                .pick(&["1e131071", "1e-16383", "2147483648", "9e18", "1e20", "0e-5"])
                .to_owned(),
        }
    }

    /// A string with its quotes, some characters escaped.
    fn string(&mut self) -> String {
        let contents = match self.below(10) {
            0..=4 => self.name(),
            5 => {
                self.pick(&["1", "true", "1.5", " 2 ", "0x1F", "1e3", "yes"]).to_owned()
            }
            6 => self
                .pick(&["\u{7f}", "\u{2028}", "\\", "\"", "/", "\n", "\u{1}"])
                .into(),
            7 => "z".repeat(118 + self.below(14)),
            _ => {
                let len = self.below(6);
                (0..len).map(|_| self.character()).collect()
            }
        };
        let mut out = String::from("\"");
        for c in contents.chars() {
            let mut units = [0; 2];
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\n' if self.one_in(2) => out.push_str("\\n"),
                '/' if self.one_in(2) => out.push_str("\\/"),
                c if c < ' ' || self.one_in(20) => {
                    for unit in c.encode_utf16(&mut units) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                c => out.push(c),
            }
        }
        out + "\""
    }

    fn character(&mut self) -> char {
        loop {
            let limit = [0x80, 0x800, 0x1_0000, 0x11_0000][self.below(4)];
            match char::from_u32(u32::try_from(self.below(limit)).unwrap()) {
                Some('\0') | None => {}
                Some(c) => return c,
            }
        }
    }

    fn space(&mut self) -> &'static str {
        if self.one_in(6) { self.pick(&[" ", "\t", "\n", "\r", "  "]) } else { "" }
    }

    fn value(&mut self, depth: usize, out: &mut String) {
        out.push_str(self.space());
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 => out.push_str(self.pick(&["null", "true", "false"])),
            1..=2 => out.push_str(&self.number()),
            3..=5 => out.push_str(&self.string()),
            6..=7 => {
                out.push('[');
                for at in 0..self.below(4) {
                    out.push_str(if at > 0 { "," } else { "" });
                    self.value(depth - 1, out);
                }
                out.push(']');
            }
            _ => {
                out.push('{');
                for at in 0..self.below(5) {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(self.space());
                    if self.one_in(8) {
                        out.push_str(&self.string());
                    } else {
                        out.push_str(&format!("\"{}\"", self.name()));
                    }
                    out.push_str(self.space());
                    out.push(':');
                    self.value(depth - 1, out);
                }
                out.push('}');
            }
        }
        out.push_str(self.space());
    }

    /// A valid JSON text.
    pub fn document(&mut self) -> String {
        let mut out = String::new();
        let depth = self.below(6);
        self.value(depth, &mut out);
        out
    }

    /// A valid JSON text of few names and values.
    pub fn small_document(&mut self) -> String {
        let mut out = String::new();
        let depth = 1 + self.below(3);
        self.small_value(depth, &mut out);
        out
    }

    fn small_value(&mut self, depth: usize, out: &mut String) {
        match self.below(if depth == 0 { 6 } else { 14 }) {
            0 => out.push_str(self.pick(&["null", "true", "false", "\"\""])),
            1..=2 => {
                out.push_str(self.pick(&["0", "1", "2", "1.0", "-1", "1.5", "7e3"]));
            }
            3 => {
                out.push_str(self.pick(&["\"1\"", "\"true\"", "\" 1.50\"", "\"1e2\""]));
            }
            4..=5 => {
                out.push_str(self.pick(&["\"a\"", "\"b\"", "\"abc\"", "\"A\\nb\""]));
            }
            6..=9 => {
                out.push('[');
                for at in 0..self.below(4) {
                    out.push_str(if at > 0 { "," } else { "" });
                    self.small_value(depth - 1, out);
                }
                out.push(']');
            }
            _ => {
                out.push('{');
                for at in 0..self.below(4) {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(self.pick(&["\"a\":", "\"b\":", "\"c\":", "\"id\":"]));
                    self.small_value(depth - 1, out);
                }
                out.push('}');
            }
        }
    }

    /// Two documents, the second often a part of the first or nearly so.
    pub fn pair(&mut self) -> (String, String) {
        let left = self.small_document();
        let right = match self.below(3) {
            0 => self.small_document(),
            1 => left.clone(),
            // An element or a member is left out, if that goes well.
            _ => {
                let cuts: Vec<usize> =
                    left.match_indices(',').map(|(at, _)| at).collect();
                let mut right = left.clone();
                if !cuts.is_empty() {
                    let from = cuts[self.below(cuts.len())];
                    let ends = left[from + 1..].find([',', ']', '}']);
                    right.replace_range(from..from + 1 + ends.unwrap_or(0), "");
                }
                if ginmill::opclass::jsonb::parse(&right).is_ok() {
                    right
                } else {
                    left.clone()
                }
            }
        };
        (left, right)
    }

    /// A text of which something is broken, as often as not.
    pub fn json_or_not(&mut self) -> String {
        let text = self.document();
        self.broken(
            text,
            &[
                "\"",
                "\\",
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                "-",
                "0",
                ".",
                "e",
                "E+",
                "\\u",
                "\\ud800",
                "\\udc00",
                "\\u0000",
                "\\x",
                "nul",
                "true",
                "1e999999",
                "\u{a0}",
                "'",
                "\t",
                "\u{1}",
                "é",
                "_",
                "NaN",
                "1e-16384",
                "/",
                "\\ud83d\\ude00",
                "\\u00e",
                "+1",
                "0e2000000000",
            ],
        )
    }

    fn broken(&mut self, mut text: String, pieces: &[&str]) -> String {
        for _ in 0..[0, 0, 1, 1, 2, 3][self.below(6)] {
            let places: Vec<usize> =
                text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let at = places[self.below(places.len())];
            match self.below(3) {
                0 => text.truncate(at),
                1 => {
                    let end = places.iter().find(|&&place| place > at);
                    text.replace_range(at..*end.unwrap_or(&at), "");
                }
                _ => text.insert_str(at, self.pick(pieces)),
            }
        }
        text
    }
}

/// jsonpaths.
impl Random {
    /// A path that both sides accept.
    pub fn path(&mut self) -> String {
        let mode = self.pick(&["", "", "lax ", "strict "]);
        let depth = 1 + self.below(3);
        let path = if self.one_in(3) {
            self.predicate(depth, false)
        } else {
            self.chain(depth, false)
        };
        format!("{mode}{path}")
    }

    /// The same, but a predicate.
    pub fn predicate_path(&mut self) -> String {
        let mode = self.pick(&["", "", "strict "]);
        let depth = 1 + self.below(2);
        format!("{mode}{}", self.predicate(depth, false))
    }

    fn literal(&mut self) -> &'static str {
        self.pick(&[
            "1", "2", "0", "1.0", "-1", "1.5", "\"a\"", "\"b\"", "\"1\"", "null",
            "true", "false", "7000", "\"\"",
        ])
    }

    /// Where a chain starts, with accessors behind it.
    fn chain(&mut self, depth: usize, in_filter: bool) -> String {
        let mut out = match self.below(16) {
            0 => format!("({})", self.literal()),
            1 if depth > 0 => format!("({})", self.sum(depth - 1, in_filter)),
            2 if depth > 0 => format!("({})", self.predicate(depth - 1, in_filter)),
            _ if in_filter && !self.one_in(4) => "@".to_owned(),
            _ => "$".to_owned(),
        };
        // A predicate in parentheses is an expression only with something behind it.
        let least = usize::from(out.starts_with('('));
        for _ in 0..least.max(self.below(4)) {
            let accessor = self.accessor(depth, in_filter);
            out.push_str(&accessor);
        }
        out
    }

    fn accessor(&mut self, depth: usize, in_filter: bool) -> String {
        match self.below(24) {
            0..=6 => {
                format!(".{}", self.pick(&["a", "b", "c", "id", "\"a\"", "value"]))
            }
            7 => ".*".to_owned(),
            8..=9 => "[*]".to_owned(),
            10 => format!("[{}]", self.below(3)),
            11 => self
                .pick(&[
                    "[last]",
                    "[0 to last]",
                    "[1, 0]",
                    "[last - 1]",
                    "[-1]",
                    "[1.9]",
                ])
                .to_owned(),
            12 if depth > 0 => {
                let inner = self.chain(0, in_filter);
                format!("[{inner} to {}]", self.pick(&["last", "1"]))
            }
            13 => self
                .pick(&[".**", ".**{1}", ".**{0 to 1}", ".**{2 to last}", ".**{last}"])
                .to_owned(),
            14..=17 if depth > 0 => format!(" ? ({})", self.predicate(depth - 1, true)),
            18 => self
                .pick(&[".keyvalue()", ".keyvalue().value", ".keyvalue().id"])
                .into(),
            19 => self.pick(&[".decimal()", ".decimal(3,1)", ".decimal(2)"]).to_owned(),
            20..=21 => self
                .pick(&[
                    ".size()",
                    ".type()",
                    ".double()",
                    ".ceiling()",
                    ".floor()",
                    ".abs()",
                    ".number()",
                    ".integer()",
                    ".bigint()",
                    ".string()",
                    ".boolean()",
                ])
                .to_owned(),
            _ => ".a".to_owned(),
        }
    }

    fn sum(&mut self, depth: usize, in_filter: bool) -> String {
        if self.one_in(2) {
            return self.chain(depth, in_filter);
        }
        let (left, right) = (self.chain(depth, in_filter), self.chain(0, in_filter));
        match self.below(8) {
            0 => format!("-{left}"),
            1 => format!("+{left}"),
            _ => format!("{left} {} {right}", self.pick(&["+", "-", "*", "/", "%"])),
        }
    }

    fn predicate(&mut self, depth: usize, in_filter: bool) -> String {
        if depth > 0 && self.one_in(2) {
            let left = self.predicate(depth - 1, in_filter);
            return match self.below(7) {
                0..=1 => {
                    format!("({left}) && ({})", self.predicate(depth - 1, in_filter))
                }
                2..=3 => format!("{left} || {}", self.predicate(depth - 1, in_filter)),
                4 => format!("!({left})"),
                5 => format!("({left}) is unknown"),
                _ => format!("exists({})", self.chain(depth, in_filter)),
            };
        }
        let left = self.sum(depth, in_filter);
        match self.below(12) {
            0..=5 => format!("{left} == {}", self.literal()),
            6 => format!("{} == {left}", self.literal()),
            7..=8 => {
                let operator = self.pick(&["==", "!=", "<>", "<", ">", "<=", ">="]);
                format!("{left} {operator} {}", self.sum(0, in_filter))
            }
            9 => {
                format!("{left} starts with {}", self.pick(&["\"a\"", "\"\"", "\"1\""]))
            }
            10 => {
                let pattern = self.pick(&[
                    "^a",
                    "b$",
                    "a.b",
                    "[[:digit:]]",
                    "A",
                    "^.$",
                    "[^a]b",
                    "\\\\d",
                    "(a|b)+c?",
                    "\\\\ma",
                ]);
                let flags = self.pick(&[
                    "",
                    " flag \"i\"",
                    " flag \"s\"",
                    " flag \"m\"",
                    " flag \"q\"",
                ]);
                format!("{left} like_regex \"{pattern}\"{flags}")
            }
            _ => format!("exists({left})"),
        }
    }

    /// A path of which something is broken, as often as not.
    pub fn path_or_not(&mut self) -> String {
        let text = self.path();
        let text = match self.below(6) {
            0 => text.replace(' ', ""),
            1 => text.replace(' ', "/**/"),
            _ => text,
        };
        self.broken(
            text,
            &[
                "(",
                ")",
                "[",
                "]",
                "{",
                "}",
                "\"",
                "\\",
                ".",
                "..",
                "*",
                "**",
                "?",
                "@",
                "$",
                "$v",
                "$\"v w\"",
                "!",
                "&&",
                "||",
                "==",
                "=",
                "<>",
                "<=",
                "to",
                "last",
                "is",
                "unknown",
                "exists",
                "1",
                "0x1F",
                "1_000",
                "1.",
                ".5",
                "1e",
                "1e+",
                "/*",
                "*/",
                "/",
                "\\u0041",
                "\\x41",
                "\\u{1F600}",
                "\\u",
                "-",
                "+",
                "null",
                "NULL",
                "TRUE",
                "Exists",
                "size",
                "strict",
                "lax",
                "#",
                "'",
                "é",
                ",",
                ":",
                "\n",
                "flag",
                "\"i\"",
                " ",
                "decimal(1,2)",
                ".size",
                "()",
            ],
        )
    }
}

/// Regular expressions and what they are tried on.
impl Random {
    /// A short text of few characters, some of them newlines.
    pub fn line(&mut self) -> String {
        const CHARACTERS: [&str; 20] = [
            "a", "b", "a", "b", "A", "B", "c", "1", "_", "-", " ", "\n", "é", "É", ".",
            "\\", "]", "\t", "中", "٣",
        ];
        (0..self.below(7)).map(|_| self.pick(&CHARACTERS)).collect()
    }

    /// A path `$ like_regex "…" flag "…"`.
    pub fn like_regex(&mut self) -> String {
        const PIECES: [&str; 62] = [
            "a",
            "b",
            "a",
            "b",
            "c",
            "A",
            "1",
            "_",
            " ",
            "é",
            "\n",
            ".",
            ".",
            "^",
            "$",
            "|",
            "(",
            ")",
            "(a|b)",
            "(?:ab)",
            "*",
            "+",
            "?",
            "*?",
            "{2}",
            "{1,}",
            "{0,2}",
            "{,2}",
            "{",
            "}",
            "[ab]",
            "[^a]",
            "[^a-c]",
            "[]a]",
            "[a\\]]",
            "[a-]",
            "[b-a]",
            "[",
            "]",
            "[[:alpha:]]",
            "[^[:digit:]_]",
            "[[:space:]b]",
            "[[:upper:]]",
            "[[=a=]]",
            "[[.-.]]",
            "[\\d_]",
            "[[:<:]]",
            "\\d",
            "\\w",
            "\\s",
            "\\D",
            "\\W",
            "\\S",
            "\\m",
            "\\M",
            "\\y",
            "\\A",
            "\\Z",
            "\\.",
            "\\u00e9",
            "\\x41",
            "\\n",
        ];
        const STARTS: [&str; 6] = ["(?i)", "(?n)", "(?s)", "***=", "***:", "(?c)"];
        let mut pattern = String::new();
        if self.one_in(12) {
            pattern.push_str(self.pick(&STARTS));
        }
        for _ in 0..1 + self.below(5) {
            pattern.push_str(self.pick(&PIECES));
        }
        let flags = self.pick(&["", "", "i", "s", "m", "q", "is", "im", "sm"]);
        let pattern = serde_json::to_string(&pattern).unwrap();
        match flags {
            "" => format!("$ like_regex {pattern}"),
            flags => format!("$ like_regex {pattern} flag \"{flags}\""),
        }
    }
}
