//! HTML to the text that a reader would see.
//!
//! Tags go; those that end a line or a cell leave a line end or a space, so that words
//! of neighbouring cells stay apart, which is why mail-parser's converter is not used.
//! Scripts, styles, titles and comments go with what they hold. White space is
//! collapsed. One pass, whatever the input: what is left open is text.

use mail_parser::decoders::html::add_html_token;
use memchr::{memchr, memchr2, memmem};

/// Longest name of a character reference.
const REFERENCE_MAX: usize = 40;
/// Elements whose content is not shown.
const HIDDEN: [&str; 4] = ["script", "style", "title", "template"];
/// Elements inside a line, that do not part words.
const INLINE: [&str; 22] = [
    "a", "abbr", "b", "bdo", "big", "cite", "code", "em", "font", "i", "ins", "del",
    "kbd", "s", "small", "span", "strike", "strong", "sub", "sup", "tt", "u",
];
/// Elements that stand beside each other on a line.
const CELLS: [&str; 6] = ["td", "th", "img", "input", "option", "label"];

/// The text of an HTML document.
pub(super) fn to_text(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    let mut rest = html;
    // Whether anything was found missing to the end, so that it is not looked for again.
    let (mut no_tag_end, mut no_comment_end) = (false, false);
    let mut no_hidden_end = [false; HIDDEN.len()];
    while let Some(at) = memchr2(b'<', b'&', rest.as_bytes()) {
        push_text(&mut out, &rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('&') {
            rest = push_reference(&mut out, rest);
            continue;
        }
        if rest.starts_with("<!--") && !no_comment_end {
            match memmem::find(&rest.as_bytes()[4..], b"-->") {
                Some(end) => {
                    rest = &rest[4 + end + 3..];
                    continue;
                }
                None => no_comment_end = true,
            }
        }
        let is_tag = rest
            .as_bytes()
            .get(1)
            .is_some_and(|byte| byte.is_ascii_alphabetic() || b"/!?".contains(byte));
        let end =
            (is_tag && !no_tag_end).then(|| memchr(b'>', rest.as_bytes())).flatten();
        let Some(end) = end else {
            no_tag_end |= is_tag;
            push_text(&mut out, "<");
            rest = &rest[1..];
            continue;
        };
        let name = tag_name(&rest[1..end]);
        let closing = rest[1..].starts_with('/');
        rest = &rest[end + 1..];
        let is =
            |names: &[&str]| names.iter().position(|it| it.eq_ignore_ascii_case(name));
        if let Some(hidden) = is(&HIDDEN) {
            if !closing && !no_hidden_end[hidden] {
                match end_of_hidden(rest, HIDDEN[hidden]) {
                    Some(end) => rest = &rest[end..],
                    None => no_hidden_end[hidden] = true,
                }
            }
        } else if is(&CELLS).is_some() {
            push_space(&mut out);
        } else if is(&INLINE).is_none() {
            push_newline(&mut out);
        }
    }
    push_text(&mut out, rest);
    out.truncate(out.trim_end().len());
    out
}

/// The name in what stands between `<` and `>`.
fn tag_name(tag: &str) -> &str {
    let tag = tag.strip_prefix('/').unwrap_or(tag);
    let end = tag.bytes().position(|byte| !byte.is_ascii_alphanumeric());
    &tag[..end.unwrap_or(tag.len())]
}

/// Where `</name` stands.
fn end_of_hidden(html: &str, name: &str) -> Option<usize> {
    let bytes = html.as_bytes();
    memmem::find_iter(bytes, b"</").find(|&at| {
        let found = bytes.get(at + 2..at + 2 + name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    })
}

/// Appends the character that the reference at the start of `html` stands for, or its
/// `&`; what follows it.
fn push_reference<'a>(out: &mut String, html: &'a str) -> &'a str {
    let bytes = &html.as_bytes()[..html.len().min(REFERENCE_MAX)];
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let len = bytes[1..].iter().take_while(|byte| is_name(byte)).count() + 1;
    if len == 1 || html.as_bytes().get(len) != Some(&b';') {
        out.push('&');
        return &html[1..];
    }
    let reference = &html.as_bytes()[..=len];
    if reference.eq_ignore_ascii_case(b"&nbsp;") {
        push_space(out);
    } else {
        add_html_token(out, reference, false);
    }
    &html[len + 1..]
}

/// Appends text with its white space collapsed.
fn push_text(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte.is_ascii_whitespace()) {
        out.push_str(&rest[..at]);
        push_space(out);
        rest = rest[at..].trim_ascii_start();
    }
    out.push_str(rest);
}

fn push_space(out: &mut String) {
    if !out.is_empty() && !out.ends_with([' ', '\n']) {
        out.push(' ');
    }
}

fn push_newline(out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_what_a_reader_sees() {
        for (html, text) in [
            ("", ""),
            ("plain & simple", "plain & simple"),
            ("<p>One</p><p>Two  \n three<br>four</p>", "One\nTwo three\nfour"),
            ("<tr><td>a</td><td>b</td></tr>", "a b"),
            ("wo<b>r</b>d <a href='x>y'>z</a>", "word y'>z"),
            ("<STYLE>p{}</Style>x<script>1<2</script >y<title>t</title>z", "xyz"),
            ("a<!-- <p> -->b<!-- open", "ab<!-- open"),
            ("&eacute;&#233;&#xe9;&nbsp;&amp;&nonsense;&lt;", "ééé &&nonsense;<"),
            ("1 < 2 <3 <end", "1 < 2 <3 <end"),
            ("<style>never closed", "never closed"),
        ] {
            assert_eq!(to_text(html), text, "{html}");
        }
    }

    #[test]
    fn crafted_html_takes_linear_time() {
        let n = 200_000;
        for piece in
            ["<", "<!--", "<style>", "&", "&a", "<a ", "</", "<style></", "> <"]
        {
            let html = piece.repeat(n);
            let start = std::time::Instant::now();
            let _ = to_text(&html);
            assert!(start.elapsed().as_secs() < 5, "{piece}");
        }
    }
}
