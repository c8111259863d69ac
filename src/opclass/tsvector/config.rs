//! Text search configurations: which dictionary a type of token goes to.
//!
//! `simple` lower-cases everything. A language's configuration sends words and compounds
//! to its stemmer and everything else to `simple`. Blanks, tags, protocols and entities
//! go nowhere. Two languages that are not written with Latin letters take plain ASCII
//! words for English.

use std::borrow::Cow;
use std::fmt;

use super::dictionary::Dictionary;
use super::languages;
use super::parser::{Parser, TokenType};
use crate::error::{Error, Result};

/// Tokens of this length or more are left out, bytes.
pub(super) const TOKEN_TOO_LONG: usize = 2047;
/// The highest position; later words share it.
pub(super) const POSITION_MAX: u16 = (1 << 14) - 1;

/// A text search configuration.
pub struct Config {
    pub(super) name: &'static str,
    pub(super) ascii_words: &'static Dictionary,
    pub(super) words: &'static Dictionary,
}

/// Which of a configuration's dictionaries; tokens that agree in text and class have
/// the same lexeme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DictionaryClass {
    Simple,
    AsciiWord,
    Word,
}

/// What a configuration makes of a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lexized<'t> {
    /// Tokens of this type are not indexed.
    Unmapped,
    /// Over PostgreSQL's length limit: left out, without a position.
    TooLong,
    /// A stop word: takes a position, is not indexed.
    StopWord,
    /// The lexeme to index.
    Lexeme(Cow<'t, str>),
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Config").field(&self.name).finish()
    }
}

impl Config {
    /// The configuration of that name, with or without `pg_catalog.`.
    pub fn find(name: &str) -> Result<&'static Config> {
        let bare = name.strip_prefix("pg_catalog.").unwrap_or(name);
        languages::CONFIGS.iter().find(|config| config.name == bare).ok_or_else(|| {
            let known: Vec<_> = Config::names().collect();
            Error::invalid(format!(
                "no text search configuration is named \"{name}\"; known are {}",
                known.join(", ")
            ))
        })
    }

    /// The names of all configurations.
    pub fn names() -> impl Iterator<Item = &'static str> {
        languages::CONFIGS.iter().map(|config| config.name)
    }

    /// PostgreSQL's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Hands on the lexemes of a text with their positions (from 1), in token order;
    /// returns how many tokens were too long.
    pub fn lexemes(&self, text: &str, emit: &mut dyn FnMut(&str, u16)) -> u64 {
        let mut too_long = 0;
        let mut position = 0;
        for token in Parser::new(text) {
            match self.lexize(token.kind, token.text) {
                Lexized::Unmapped => {}
                Lexized::TooLong => too_long += 1,
                Lexized::StopWord => position = POSITION_MAX.min(position + 1),
                Lexized::Lexeme(lexeme) => {
                    position = POSITION_MAX.min(position + 1);
                    emit(&lexeme, position);
                }
            }
        }
        too_long
    }

    /// What becomes of one token.
    pub fn lexize<'t>(&self, kind: TokenType, token: &'t str) -> Lexized<'t> {
        let Some(class) = self.class(kind) else {
            return Lexized::Unmapped;
        };
        if token.len() >= TOKEN_TOO_LONG {
            return Lexized::TooLong;
        }
        match self.dictionary(class).lexize(token) {
            None => Lexized::StopWord,
            // lower case can be longer; PostgreSQL then stores a mutilated length
            Some(lexeme) if lexeme.len() >= TOKEN_TOO_LONG => Lexized::TooLong,
            Some(lexeme) => Lexized::Lexeme(lexeme),
        }
    }

    /// The name of the dictionary that tokens of this type go to.
    pub fn dictionary_name(&self, kind: TokenType) -> Option<&'static str> {
        Some(self.dictionary(self.class(kind)?).name)
    }

    pub(super) fn class(&self, kind: TokenType) -> Option<DictionaryClass> {
        Some(match kind {
            TokenType::Blank
            | TokenType::Tag
            | TokenType::Protocol
            | TokenType::Entity => return None,
            TokenType::AsciiWord
            | TokenType::AsciiHword
            | TokenType::HwordAsciiPart => DictionaryClass::AsciiWord,
            TokenType::Word | TokenType::Hword | TokenType::HwordPart => {
                DictionaryClass::Word
            }
            _ => DictionaryClass::Simple,
        })
    }

    pub(super) fn dictionary(&self, class: DictionaryClass) -> &'static Dictionary {
        match class {
            DictionaryClass::Simple => &languages::SIMPLE,
            DictionaryClass::AsciiWord => self.ascii_words,
            DictionaryClass::Word => self.words,
        }
    }

    #[cfg(test)]
    pub(super) fn word_dictionary(&self) -> &'static Dictionary {
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_found_by_its_name_and_an_unknown_name_is_told() {
        assert_eq!(Config::find("pg_catalog.english").unwrap().name(), "english");
        assert_eq!(Config::find("simple").unwrap().name(), "simple");
        let error = Config::find("klingon").err().unwrap().to_string();
        assert!(error.contains("\"klingon\"") && error.contains("english"), "{error}");
    }

    #[test]
    fn stop_words_take_a_position_and_blanks_do_not() {
        let mut got = Vec::new();
        Config::find("english").unwrap().lexemes(
            "the <b> quick, a-b",
            &mut |lexeme, at| {
                got.push((lexeme.to_owned(), at));
            },
        );
        let expected = [("quick", 2), ("a-b", 3), ("b", 5)];
        assert_eq!(got, expected.map(|(lexeme, at)| (lexeme.to_owned(), at)));
    }

    #[test]
    fn a_lexeme_that_lower_casing_made_too_long_is_left_out() {
        let simple = Config::find("simple").unwrap();
        let (longer, longest) = ("Ⱥ".repeat(683), "Ⱥ".repeat(682));
        assert_eq!(simple.lexize(TokenType::Word, &longer), Lexized::TooLong);
        assert!(matches!(
            simple.lexize(TokenType::Word, &longest),
            Lexized::Lexeme(lexeme) if lexeme.len() == 2046
        ));
    }
}
