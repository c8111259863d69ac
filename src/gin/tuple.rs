//! Entry tuples.

/// What an entry stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Category {
    /// An ordinary key.
    Key = 0,
    /// A null among an item's keys.
    NullKey = 1,
    /// Items without any key.
    EmptyItem = 2,
    /// Items that are null.
    NullItem = 3,
}

impl TryFrom<u8> for Category {
    type Error = u8;

    fn try_from(byte: u8) -> Result<Category, u8> {
        match byte {
            0 => Ok(Category::Key),
            1 => Ok(Category::NullKey),
            2 => Ok(Category::EmptyItem),
            3 => Ok(Category::NullItem),
            other => Err(other),
        }
    }
}
