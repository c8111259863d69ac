//! A byte-bounded queue from one producer to one consumer, with a local overflow.
//!
//! Items wait in the shared part, bounded in bytes; when it is full the producer goes on
//! into an overflow of its own, also bounded, and waits only when both are full. What
//! overflowed moves to the shared part, in order, as soon as that has room and a
//! threshold's worth of overflow has come together or nothing else is left to send, so
//! that the lock is taken for many items at a time. Statistics tell how often and how
//! long the producer waited. The idea is that of local queues behind PostgreSQL's shared
//! tuple queues.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How a queue is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueOptions {
    /// Bytes that the shared part holds (one item more when it is empty).
    pub shared: usize,
    /// Bytes that the local overflow holds; 0 for none.
    pub overflow: usize,
    /// Bytes of overflow that are worth a lock.
    pub flush: usize,
}

/// What a queue went through.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct QueueStats {
    /// Items sent.
    pub items: u64,
    /// Times the producer waited, both parts being full.
    pub stalls: u64,
    /// How long it waited in all.
    pub stalled: Duration,
    /// Times the consumer was woken up.
    pub wakeups: u64,
    /// Times the producer took the lock.
    pub locks: u64,
    /// Most bytes in the shared part.
    pub shared_peak: usize,
    /// Most bytes in the overflow.
    pub overflow_peak: usize,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    options: QueueOptions,
    filled: Condvar,
    drained: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    producer_gone: bool,
    consumer_gone: bool,
    consumer_waits: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("no code of ours panics under this lock")
    }
}

/// A new queue.
pub fn queue<T>(options: QueueOptions) -> (Producer<T>, Consumer<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            items: VecDeque::new(),
            bytes: 0,
            producer_gone: false,
            consumer_gone: false,
            consumer_waits: false,
        }),
        options,
        filled: Condvar::new(),
        drained: Condvar::new(),
    });
    let producer = Producer {
        shared: Arc::clone(&shared),
        overflow: VecDeque::new(),
        overflow_bytes: 0,
        stats: QueueStats::default(),
    };
    (producer, Consumer { shared })
}

/// The sending end.
#[derive(Debug)]
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
    overflow: VecDeque<(T, usize)>,
    overflow_bytes: usize,
    stats: QueueStats,
}

impl<T> Producer<T> {
    /// Sends an item that counts `bytes`; `false` when the consumer is gone, and then the
    /// item is dropped.
    pub fn send(&mut self, item: T, bytes: usize) -> bool {
        let options = self.shared.options;
        self.stats.items += 1;
        self.overflow.push_back((item, bytes));
        self.overflow_bytes += bytes;
        if options.overflow > 0
            && self.overflow_bytes < options.flush.min(options.overflow)
        {
            return true;
        }
        self.flush_to(options.overflow)
    }

    /// Sends all that overflowed, waiting for room; `false` when the consumer is gone.
    pub fn flush(&mut self) -> bool {
        self.flush_to(0)
    }

    /// Moves items to the shared part while it has room; waits while more than `keep`
    /// bytes are left over.
    fn flush_to(&mut self, keep: usize) -> bool {
        let shared = Arc::clone(&self.shared);
        self.stats.locks += 1;
        let mut state = shared.lock();
        loop {
            if state.consumer_gone {
                return false;
            }
            let before = state.items.len();
            while let Some(&(_, bytes)) = self.overflow.front() {
                let room = state.bytes + bytes <= shared.options.shared;
                if !room && !state.items.is_empty() {
                    break;
                }
                state.items.extend(self.overflow.pop_front());
                state.bytes += bytes;
                self.overflow_bytes -= bytes;
            }
            self.stats.shared_peak = self.stats.shared_peak.max(state.bytes);
            self.stats.overflow_peak =
                self.stats.overflow_peak.max(self.overflow_bytes);
            if state.items.len() > before && state.consumer_waits {
                self.stats.wakeups += 1;
                state.consumer_waits = false;
                shared.filled.notify_one();
            }
            if self.overflow.is_empty() || self.overflow_bytes <= keep {
                return true;
            }
            let since = Instant::now();
            self.stats.stalls += 1;
            state = shared.drained.wait(state).expect("see `Shared::lock`");
            self.stats.stalled += since.elapsed();
        }
    }

    /// What happened so far.
    pub fn stats(&self) -> QueueStats {
        self.stats
    }

    /// Sends the rest and closes the queue.
    pub fn finish(mut self) -> QueueStats {
        self.flush();
        self.stats
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.lock().producer_gone = true;
        self.shared.filled.notify_one();
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Consumer<T> {
    /// The next item, waited for; `None` once the producer is gone and all is received.
    pub fn receive(&self) -> Option<T> {
        let mut state = self.shared.lock();
        loop {
            if let Some((item, bytes)) = state.items.pop_front() {
                state.bytes -= bytes;
                self.shared.drained.notify_one();
                return Some(item);
            }
            if state.producer_gone {
                return None;
            }
            state.consumer_waits = true;
            state = self.shared.filled.wait(state).expect("see `Shared::lock`");
        }
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.shared.lock().consumer_gone = true;
        self.shared.drained.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: QueueOptions = QueueOptions { shared: 10, overflow: 20, flush: 4 };

    #[test]
    fn items_arrive_in_order_and_the_bounds_hold() {
        for options in [
            SMALL,
            QueueOptions { overflow: 0, ..SMALL },
            QueueOptions { shared: 1, overflow: 1, flush: 1 },
        ] {
            let (mut producer, consumer) = queue(options);
            let sender = std::thread::spawn(move || {
                (0..10_000).for_each(|n| assert!(producer.send(n, 3)));
                producer.finish()
            });
            let received: Vec<i32> =
                std::iter::from_fn(|| consumer.receive()).collect();
            assert_eq!(received, (0..10_000).collect::<Vec<_>>());
            let stats = sender.join().unwrap();
            assert_eq!(stats.items, 10_000);
            assert!(stats.shared_peak <= options.shared.max(3), "{stats:?}");
            assert!(stats.overflow_peak <= options.overflow + 3, "{stats:?}");
        }
    }

    #[test]
    fn a_producer_learns_that_its_consumer_is_gone() {
        let (mut producer, consumer) = queue(QueueOptions { overflow: 0, ..SMALL });
        assert!(producer.send(1, 8));
        drop(consumer);
        assert!(!producer.send(2, 8));
    }

    #[test]
    fn overflow_is_sent_when_the_producer_finishes() {
        let (mut producer, consumer) = queue(SMALL);
        assert!(producer.send("below the threshold", 1));
        assert_eq!(producer.stats().locks, 0);
        producer.finish();
        assert_eq!(consumer.receive(), Some("below the threshold"));
        assert_eq!(consumer.receive(), None);
    }
}
