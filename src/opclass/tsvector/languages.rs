//! The configurations and their dictionaries: every language that PostgreSQL 18 has a
//! Snowball stemmer for. The stop word files beside are Snowball's own (`stopwords/`, see
//! the note there); languages without one have no stop words.
//!
//! To add a language: its stemmer, a line in the list below.

use super::config::Config;
use super::dictionary::Dictionary;
use super::stemmer;

/// The dictionary of everything that is not a word.
pub(super) static SIMPLE: Dictionary = Dictionary::simple();

macro_rules! dictionaries {
    ($($static:ident = $name:literal $stem:ident $stop_words:expr;)+) => {$(
        static $static: Dictionary =
            Dictionary::stemming(concat!($name, "_stem"), stemmer::$stem, $stop_words);
    )+};
}

macro_rules! stop {
    ($language:literal) => {
        include_str!(concat!("stopwords/", $language, ".stop"))
    };
}

dictionaries! {
    ARABIC = "arabic" arabic "";
    ARMENIAN = "armenian" armenian "";
    BASQUE = "basque" basque "";
    CATALAN = "catalan" catalan "";
    DANISH = "danish" danish stop!("danish");
    DUTCH = "dutch" dutch stop!("dutch");
    ENGLISH = "english" english stop!("english");
    ESTONIAN = "estonian" estonian "";
    FINNISH = "finnish" finnish stop!("finnish");
    FRENCH = "french" french stop!("french");
    GERMAN = "german" german stop!("german");
    GREEK = "greek" greek "";
    HINDI = "hindi" hindi "";
    HUNGARIAN = "hungarian" hungarian stop!("hungarian");
    INDONESIAN = "indonesian" indonesian "";
    IRISH = "irish" irish "";
    ITALIAN = "italian" italian stop!("italian");
    LITHUANIAN = "lithuanian" lithuanian "";
    NEPALI = "nepali" nepali stop!("nepali");
    NORWEGIAN = "norwegian" norwegian stop!("norwegian");
    PORTUGUESE = "portuguese" portuguese stop!("portuguese");
    ROMANIAN = "romanian" romanian "";
    RUSSIAN = "russian" russian stop!("russian");
    SERBIAN = "serbian" serbian "";
    SPANISH = "spanish" spanish stop!("spanish");
    SWEDISH = "swedish" swedish stop!("swedish");
    TAMIL = "tamil" tamil "";
    TURKISH = "turkish" turkish stop!("turkish");
    YIDDISH = "yiddish" yiddish "";
}

macro_rules! configs {
    ($($name:literal: $ascii_words:ident $words:ident,)+) => {
        &[$(Config { name: $name, ascii_words: &$ascii_words, words: &$words }),+]
    };
}

/// Every configuration: its name, the dictionary of ASCII words and that of the others.
pub(super) static CONFIGS: &[Config] = configs! {
    "simple": SIMPLE SIMPLE,
    "english": ENGLISH ENGLISH,
    "arabic": ARABIC ARABIC,
    "armenian": ARMENIAN ARMENIAN,
    "basque": BASQUE BASQUE,
    "catalan": CATALAN CATALAN,
    "danish": DANISH DANISH,
    "dutch": DUTCH DUTCH,
    "estonian": ESTONIAN ESTONIAN,
    "finnish": FINNISH FINNISH,
    "french": FRENCH FRENCH,
    "german": GERMAN GERMAN,
    "greek": GREEK GREEK,
    "hindi": ENGLISH HINDI,
    "hungarian": HUNGARIAN HUNGARIAN,
    "indonesian": INDONESIAN INDONESIAN,
    "irish": IRISH IRISH,
    "italian": ITALIAN ITALIAN,
    "lithuanian": LITHUANIAN LITHUANIAN,
    "nepali": NEPALI NEPALI,
    "norwegian": NORWEGIAN NORWEGIAN,
    "portuguese": PORTUGUESE PORTUGUESE,
    "romanian": ROMANIAN ROMANIAN,
    "russian": ENGLISH RUSSIAN,
    "serbian": SERBIAN SERBIAN,
    "spanish": SPANISH SPANISH,
    "swedish": SWEDISH SWEDISH,
    "tamil": TAMIL TAMIL,
    "turkish": TURKISH TURKISH,
    "yiddish": YIDDISH YIDDISH,
};
