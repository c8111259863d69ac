//! Arrays as texts: `{a,"b c",NULL}`, as PostgreSQL reads them.

/// Reads PostgreSQL's text form of a one-dimensional array, `{a,"b c",NULL}`.
pub(super) fn parse_array(text: &str) -> Option<Vec<Option<String>>> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut elements = Vec::new();
    let mut rest = inner.trim_start();
    if rest.is_empty() {
        return Some(elements);
    }
    loop {
        let mut element = String::new();
        let quoted = rest.starts_with('"');
        let mut characters = rest.char_indices().skip(usize::from(quoted));
        let mut escaped_any = false;
        // Length of `element` that trailing white space cannot take away.
        let mut solid = 0;
        let behind = loop {
            match characters.next() {
                None if quoted => return None,
                None => break rest.len(),
                Some((at, '"')) if quoted => break at + 1,
                Some((at, ',')) if !quoted => break at,
                Some((_, '{' | '}' | '"')) if !quoted => return None,
                Some((_, '\\')) => {
                    element.push(characters.next()?.1);
                    escaped_any = true;
                    solid = element.len();
                }
                Some((_, c)) => {
                    element.push(c);
                    if quoted || !c.is_ascii_whitespace() {
                        solid = element.len();
                    }
                }
            }
        };
        element.truncate(solid);
        rest = rest[behind..].trim_start();
        if quoted || escaped_any {
            elements.push(Some(element));
        } else if element.is_empty() {
            return None;
        } else if element.eq_ignore_ascii_case("null") {
            elements.push(None);
        } else {
            elements.push(Some(element));
        }
        if rest.is_empty() {
            return Some(elements);
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_texts_are_postgresqls() {
        let read = |text: &str| {
            parse_array(text).map(|elements| {
                let shown = elements.iter().map(|e| e.as_deref().unwrap_or("-"));
                shown.collect::<Vec<_>>().join("|")
            })
        };
        assert_eq!(
            read("{a, b c ,NULL,\"NULL\",\"x,\\\"y\"}").as_deref(),
            Some("a|b c|-|NULL|x,\"y")
        );
        assert_eq!(read(" {} ").as_deref(), Some(""));
        for bad in ["a", "{a", "{,}", "{a,}", "{\"a}", "{{a}}", "{a\"b}", "{\"a\"b}"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
