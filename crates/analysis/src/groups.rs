//! Lists in the order of the Record: what belongs together, and each thing once. For a few cells, not for many I/Os.

/// The items with the same key together, in the order in which each key first occurs.
pub fn by_key<K: PartialEq, T>(items: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, item) in items {
        match groups.iter_mut().find(|(earlier, _)| *earlier == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

/// Each item once, in the order in which it first occurs.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    by_key(items.into_iter().map(|item| (item, ()))).into_iter().map(|(item, _)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_items_keep_the_order_in_which_they_first_occur() {
        let items = [("b", 1), ("a", 2), ("b", 3)];
        assert_eq!(by_key(items), [("b", vec![1, 3]), ("a", vec![2])]);
        assert_eq!(distinct(items.map(|(key, _)| key)), ["b", "a"]);
        assert_eq!(by_key(Vec::<(u8, u8)>::new()), []);
    }
}
