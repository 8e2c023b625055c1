//! Values in numbered slots that are reused. It is generic over the values.

/// Values in slots; a slot is reused after its value is removed.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    pub(super) fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, thing: T) -> usize {
        match self.free.pop() {
            Some(place) => {
                self.places[place] = Some(thing);
                place
            }
            None => {
                self.places.push(Some(thing));
                self.places.len() - 1
            }
        }
    }

    pub(super) fn get(&self, place: usize) -> &T {
        self.places[place].as_ref().expect("a name is used only while its thing is there")
    }

    pub(super) fn get_mut(&mut self, place: usize) -> &mut T {
        self.places[place].as_mut().expect("a name is used only while its thing is there")
    }

    pub(super) fn remove(&mut self, place: usize) -> T {
        self.free.push(place);
        self.places[place].take().expect("a thing is removed once")
    }
}
