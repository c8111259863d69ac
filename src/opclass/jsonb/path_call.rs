//! Methods of jsonpath on one value: `.size()`, `.double()`, `.keyvalue()` …
//!
//! A method that is not meant for a value is an error, as far as structure is not
//! forgiven; one that is meant for scalars runs on the elements of an array in lax mode.

use std::borrow::Cow;

use super::arith::{self, Rounding};
use super::numeric;
use super::path::{Method, StepId};
use super::path_exec::{Failed, Found, Outcome, Walk};
use super::path_item::{Base, Item, number_item};
use super::path_methods as methods;
use super::tree::Kind;

impl<'a> Walk<'a> {
    /// Runs a method without arguments, and through it all steps that follow.
    pub(super) fn method(
        &mut self,
        step: StepId,
        method: Method,
        item: &Item<'a>,
        found: &mut Found<'a>,
        unwrap: bool,
    ) -> Outcome {
        let kind = self.items.kind(item);
        if unwrap
            && kind == Kind::Array
            && !matches!(method, Method::Size | Method::Type)
        {
            return self.unwrapped(step, item, found);
        }
        let result = match method {
            Method::Type => Item::String(Cow::Borrowed(match kind {
                Kind::Null => "null",
                Kind::Bool(_) => "boolean",
                Kind::Number(_) => "number",
                Kind::String(_) => "string",
                Kind::Array => "array",
                Kind::Object => "object",
            })),
            Method::Size if kind == Kind::Array => {
                number_item(self.items.len(item) as i64)
            }
            Method::Size if self.path.lax => number_item(1),
            Method::Size => return self.structural(),
            Method::KeyValue => return self.key_value(step, item, found),
            Method::Abs | Method::Floor | Method::Ceiling => {
                let Kind::Number(number) = kind else { return Err(Failed) };
                Item::Number(match method {
                    Method::Abs => Cow::Owned(
                        number.strip_prefix('-').unwrap_or(number).to_owned(),
                    ),
                    method => {
                        let rounding = match method {
                            Method::Floor => Rounding::Floor,
                            _ => Rounding::Ceiling,
                        };
                        Cow::Owned(
                            arith::round(number, 0, rounding).map_err(|_| Failed)?,
                        )
                    }
                })
            }
            Method::Double => match kind {
                Kind::Number(number) if methods::fits_double(number) => item.clone(),
                Kind::String(string) => {
                    let number = methods::double_of(string).ok_or(Failed)?;
                    Item::Number(Cow::Owned(number))
                }
                _ => return Err(Failed),
            },
            Method::Bigint | Method::Integer => {
                let integer = match kind {
                    Kind::Number(number) => arith::to_integer(number),
                    Kind::String(string) => methods::parse_integer(string),
                    _ => None,
                };
                let fits = |integer: &i64| {
                    method == Method::Bigint || i32::try_from(*integer).is_ok()
                };
                number_item(integer.filter(fits).ok_or(Failed)?)
            }
            Method::Boolean => {
                let value = match kind {
                    Kind::Bool(value) => Some(value),
                    Kind::Number(number) => methods::integer_text(number)
                        .and_then(|integer| i32::try_from(integer).ok())
                        .map(|integer| integer != 0),
                    Kind::String(string) => methods::parse_bool(string),
                    _ => None,
                };
                Item::Bool(value.ok_or(Failed)?)
            }
            Method::Number => Item::Number(self.number(item).ok_or(Failed)?),
            Method::String => Item::String(match kind {
                Kind::String(string) => Cow::Owned(string.to_owned()),
                Kind::Bool(value) => {
                    Cow::Borrowed(if value { "true" } else { "false" })
                }
                Kind::Number(number) => {
                    let mut text = String::new();
                    numeric::print(number, &mut text);
                    Cow::Owned(text)
                }
                _ => return Err(Failed),
            }),
        };
        self.next(step, &result, found)
    }

    /// A number, or a string read as one.
    pub(super) fn number(&self, item: &Item<'a>) -> Option<Cow<'a, str>> {
        match self.items.kind(item) {
            Kind::Number(number) => Some(Cow::Owned(number.to_owned())),
            Kind::String(string) => methods::number_of(string).ok().map(Cow::Owned),
            _ => None,
        }
    }

    fn key_value(
        &mut self,
        step: StepId,
        item: &Item<'a>,
        found: &mut Found<'a>,
    ) -> Outcome {
        if self.items.kind(item) != Kind::Object {
            return Err(Failed);
        }
        let id = self.items.id(item, &self.base);
        let mut any = false;
        for at in 0.. {
            let Some(value) = self.items.child(item, at) else { break };
            let key = self.items.key(item, at);
            let pair = Item::pair(id, key, value);
            let base = std::mem::replace(&mut self.base, Base::of(&pair, self.bases));
            self.bases += 1;
            let outcome = self.next(step, &pair, found);
            self.base = base;
            any |= outcome?;
            if found.is_enough(any) {
                break;
            }
        }
        Ok(any)
    }
}
