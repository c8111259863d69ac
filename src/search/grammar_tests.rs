use super::*;

fn show(expr: &Expr) -> String {
    let list = |parts: &[Expr], word: &str| {
        let parts: Vec<_> = parts.iter().map(show).collect();
        format!("({})", parts.join(word))
    };
    match expr {
        Expr::And(parts) => list(parts, " AND "),
        Expr::Or(parts) => list(parts, " OR "),
        Expr::Not(part) => format!("NOT {}", show(part)),
        Expr::Condition(Condition { column, operator, operand, .. }) => {
            format!("{} {operator} {operand:?}", column.name)
        }
    }
}

fn parsed(text: &str) -> String {
    show(&parse(text).unwrap())
}

fn refused(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn and_binds_before_or_and_not_before_both() {
    assert_eq!(
        parsed("a = 1 OR NOT b = 2 and c=3 or (d=4 OR e=5) AND f=6"),
        "(a = Integer(1) OR (NOT b = Integer(2) AND c = Integer(3)) OR \
         ((d = Integer(4) OR e = Integer(5)) AND f = Integer(6)))"
    );
    assert_eq!(parsed("not not not a = 1"), "NOT a = Integer(1)");
    assert_eq!(parsed("not (not (a = 1))"), "a = Integer(1)");
}

#[test]
fn what_is_denied_is_the_negation_of_what_is_affirmed() {
    for (denied, affirmed) in [
        ("a NOT LIKE 'x'", "a LIKE 'x'"),
        ("a !~~* 'x'", "a ILIKE 'x'"),
        ("a !~* 'x'", "a ~* 'x'"),
        ("a <> 'x'", "a = 'x'"),
        ("a != 'x'", "a = 'x'"),
        ("a is not null", "a is null"),
        ("a not between 1 and 2", "a >= 1 and a <= 2"),
        ("a not in (1, 2)", "a = 1 or a = 2"),
    ] {
        assert_eq!(parsed(denied), format!("NOT {}", parsed(affirmed)), "{denied}");
    }
}

#[test]
fn operands_are_what_postgresql_writes() {
    let operand = |text: &str| match parse(&format!("a = {text}")).unwrap() {
        Expr::Condition(condition) => condition.operand,
        other => panic!("{other:?}"),
    };
    let text = |text: &str, cast: Option<&str>| {
        Operand::Text(text.to_owned(), cast.map(str::to_owned))
    };
    assert_eq!(operand("'it''s \\n'"), text("it's \\n", None));
    assert_eq!(operand(r"E'tab\t\u00e9\'\\'"), text("tab\té'\\", None));
    assert_eq!(operand("'x'::tsquery"), text("x", Some("tsquery")));
    assert_eq!(operand("'{}' :: text[]"), text("{}", Some("text[]")));
    assert_eq!(operand("-7"), Operand::Integer(-7));
    assert_eq!(operand("array[1, NULL]"), Operand::Integers(vec![Some(1), None]));
    assert_eq!(operand("ARRAY['a']"), Operand::Texts(vec![Some("a".to_owned())]));
    assert_eq!(operand("array[]::text[]"), Operand::Texts(vec![]));
    assert_eq!(
        operand("websearch_to_tsquery('simple', 'a b')"),
        Operand::Query {
            function: QueryFunction::Web,
            config: Some("simple".to_owned()),
            text: "a b".to_owned()
        }
    );
    assert_eq!(
        operand("to_tsquery('a')"),
        Operand::Query {
            function: QueryFunction::Operators,
            config: None,
            text: "a".to_owned()
        }
    );
}

#[test]
fn a_column_may_be_quoted_or_wrapped_in_to_tsvector() {
    let column = |text: &str| match parse(text).unwrap() {
        Expr::Condition(condition) => condition.column,
        other => panic!("{other:?}"),
    };
    assert_eq!(column("\"or \"\" x\" = 1").name, "or \" x");
    let wrapped = column("to_tsvector('simple', body) @@ to_tsquery('x')");
    assert_eq!(
        (wrapped.name.as_str(), wrapped.config.as_deref()),
        ("body", Some("simple"))
    );
    assert!(wrapped.to_tsvector);
    assert_eq!(column("to_tsvector(body) @@ 'x'").config, None);
}

#[test]
fn errors_show_the_place() {
    assert_eq!(
        refused("body @@ foo"),
        "column 9: unknown function or missing quotes: foo; text is written in single \
         quotes, and the functions are to_tsquery, plainto_tsquery, phraseto_tsquery \
         and websearch_to_tsquery\n  body @@ foo\n          ^"
    );
    assert_eq!(
        refused("a = 1 b = 2"),
        "column 7: expected AND, OR or the end\n  a = 1 b = 2\n        ^"
    );
    for (text, start) in [
        ("", "column 1: expected the name of a field or an index\n  \n  ^"),
        ("a", "column 2: expected an operator, such as @@, LIKE, @> or ="),
        ("a @@", "expected a value"),
        ("a ><= 'x'", "column 3: unknown operator ><="),
        ("a = 'x", "column 5: a string that does not end"),
        ("a = \"x", "expected a value"),
        ("\"a = 1", "column 1: a quoted name that does not end"),
        ("(a = 1", "column 7: expected ')' to close the parenthesis"),
        ("a = 1)", "column 6: a closing parenthesis that nothing opened"),
        ("a not = 1", "column 7: expected LIKE, ILIKE, BETWEEN or IN behind NOT"),
        ("a between 1 or 2", "expected AND and the upper bound of BETWEEN"),
        ("a = 99999999999999999999", "99999999999999999999 is out of range"),
        ("a = array[1, 'x']", "an array of texts and numbers"),
        ("a = E'\\x41'", "bytes by number are not taken"),
        ("a = E'\\u00'", "expected 4 hexadecimal digits of a character"),
        ("and = 1", "column 1: expected the name of a field or an index"),
        ("é = 1 é", "column 7: expected AND, OR or the end"),
    ] {
        let message = refused(text);
        let (_, plain) = message.split_once(": ").unwrap();
        let found = message.starts_with(start) || plain.starts_with(start);
        assert!(found, "{text}: {message}");
    }
}

#[test]
fn an_error_in_a_long_expression_shows_a_window_on_one_line() {
    let text = format!("{}\n b ? {}", "a = 1 AND\n".repeat(100), "x ".repeat(100));
    let message = refused(&text);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("column 1007: "), "{}", lines[0]);
    let caret = lines[2].chars().count() - 1;
    assert_eq!(lines[1].chars().nth(caret), Some('x'));
    assert!(lines[1].chars().count() < 82, "{}", lines[1]);
}

#[test]
fn nesting_is_bounded() {
    let nested =
        |depth: usize| format!("{}a = 1{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(parsed(&nested(DEPTH_MAX)), "a = Integer(1)");
    assert!(refused(&nested(DEPTH_MAX + 1)).contains("parentheses nest more than"));
    assert!(refused(&nested(1_000_000)).contains("parentheses nest more than"));
    assert_eq!(parsed(&format!("{}a = 1", "not ".repeat(1_000_000))), "a = Integer(1)");
}
