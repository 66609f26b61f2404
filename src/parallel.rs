//! Work divided between threads without changing a bit.
//!
//! Only *outputs* are divided, in chunks that the caller fixes; no sum crosses a thread. With the feature
//! `parallel` each thread of rayon's current pool has a share of adjacent chunks. It is the same in every
//! call, so that a thread finds in its own cache what it wrote in the call before. It takes them one by
//! one, then those that are left of other shares: a thread that is woken late, or sent elsewhere for a
//! while, takes fewer. Without the feature they run in order. Either way each chunk's result depends on
//! its index alone.

#[cfg(feature = "parallel")]
use core::ops::Range;
#[cfg(feature = "parallel")]
use std::sync::Mutex;

/// Calls `work(i, chunk)` for each chunk of `chunk_len` elements; the last one may be shorter.
///
/// # Panics
/// If `chunk_len` is 0.
///
/// ```
/// let mut out = [0; 5];
/// exmy::parallel::for_each_chunk(&mut out, 2, |i, chunk| chunk.fill(i + chunk.len() * 10));
/// assert_eq!(out, [20, 20, 21, 21, 12]); // the last chunk is shorter
/// ```
pub fn for_each_chunk<T: Send>(
    data: &mut [T],
    chunk_len: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    chunks(data, chunk_len, &work);
}

/// Calls `work(i, item)` for each item; items may be tuples of several outputs' chunks. An iterator is
/// asked for the next item when a thread is free, and none is stored; it must not divide work itself.
///
/// ```
/// let (mut sums, x) = ([0; 3], [1, 2, 3, 4, 5]);
/// let items = sums.iter_mut().zip(x.chunks(2));
/// exmy::parallel::for_each(items, |i, (sum, x)| *sum = x.iter().sum::<i32>() * 10 + i as i32);
/// assert_eq!(sums, [30, 71, 52]); // the last chunk has one element
/// ```
pub fn for_each<I>(items: I, work: impl Fn(usize, I::Item) + Sync + Send)
where
    I: IntoIterator<Item: Send, IntoIter: Send>,
{
    each(items.into_iter(), &work);
}

/// Calls `work(i, a, b)` for each pair of chunks of two outputs, of `a_len` and `b_len` elements.
///
/// # Panics
/// If a length is 0.
///
/// ```
/// let (mut halves, mut counts) = ([1, 2, 3, 4, 5], [0; 3]);
/// exmy::parallel::for_each_chunk_of_two((&mut halves, 2), (&mut counts, 1), |i, a, b| {
///     b[0] = 10 * i + a.len(); // the last chunk has one element
/// });
/// assert_eq!(counts, [2, 12, 21]);
/// ```
pub fn for_each_chunk_of_two<A: Send, B: Send>(
    (a, a_len): (&mut [A], usize),
    (b, b_len): (&mut [B], usize),
    work: impl Fn(usize, &mut [A], &mut [B]) + Sync + Send,
) {
    #[cfg(feature = "parallel")]
    if a.len() > a_len && rayon::current_num_threads() > 1 {
        let (mut a, mut b) = ((a, a_len), (b, b_len));
        let shares = shares(chunks_of(&a).min(chunks_of(&b)), |share| {
            let chunks = first_chunks(&mut a, share.len()).zip(first_chunks(&mut b, share.len()));
            share.zip(chunks)
        });
        return taken(&shares, |(i, (a, b))| work(i, a, b));
    }
    for (i, (a, b)) in a.chunks_mut(a_len).zip(b.chunks_mut(b_len)).enumerate() {
        work(i, a, b);
    }
}

/// As [`for_each_chunk_of_two`], of three outputs.
///
/// # Panics
/// If a length is 0.
///
/// ```
/// let (mut a, mut b, mut c) = ([0; 4], [0; 2], [0; 2]);
/// exmy::parallel::for_each_chunk_of_three((&mut a, 2), (&mut b, 1), (&mut c, 1), |i, a, b, c| {
///     (a[1], b[0], c[0]) = (i, i + 1, i + 2);
/// });
/// assert_eq!((a, b, c), ([0, 0, 0, 1], [1, 2], [2, 3]));
/// ```
pub fn for_each_chunk_of_three<A: Send, B: Send, C: Send>(
    (a, a_len): (&mut [A], usize),
    (b, b_len): (&mut [B], usize),
    (c, c_len): (&mut [C], usize),
    work: impl Fn(usize, &mut [A], &mut [B], &mut [C]) + Sync + Send,
) {
    #[cfg(feature = "parallel")]
    if a.len() > a_len && rayon::current_num_threads() > 1 {
        let (mut a, mut b, mut c) = ((a, a_len), (b, b_len), (c, c_len));
        let count = chunks_of(&a).min(chunks_of(&b)).min(chunks_of(&c));
        let shares = shares(count, |share| {
            let a = first_chunks(&mut a, share.len());
            let others = first_chunks(&mut b, share.len()).zip(first_chunks(&mut c, share.len()));
            share.zip(a.zip(others))
        });
        return taken(&shares, |(i, (a, (b, c)))| work(i, a, b, c));
    }
    let chunks = a.chunks_mut(a_len).zip(b.chunks_mut(b_len)).zip(c.chunks_mut(c_len));
    for (i, ((a, b), c)) in chunks.enumerate() {
        work(i, a, b, c);
    }
}

/// As [`for_each_chunk`]; whoever does a chunk has a workspace of `workspace_len` elements to itself, in
/// which it finds what was left there. Work is divided between as many threads as there are workspaces.
///
/// # Panics
/// If a length is 0, or there is no whole workspace.
///
/// ```
/// let (mut sums, mut workspaces) = ([0; 3], [0; 4]);
/// exmy::parallel::for_each_chunk_with((&mut sums, 1), (&mut workspaces, 2), |i, sum, workspace| {
///     workspace.fill(i);
///     sum[0] = workspace.iter().sum();
/// });
/// assert_eq!(sums, [0, 2, 4]);
/// ```
#[doc(hidden)]
pub fn for_each_chunk_with<T: Send, W: Send>(
    (data, chunk_len): (&mut [T], usize),
    workspaces: (&mut [W], usize),
    work: impl Fn(usize, &mut [T], &mut [W]) + Sync + Send,
) {
    // Elements without a size take no memory.
    let mut nothing = vec![(); data.len().div_ceil(chunk_len)];
    let work =
        |i: usize, chunk: &mut [T], _: &mut [()], workspace: &mut [W]| work(i, chunk, workspace);
    for_each_chunk_of_two_with((data, chunk_len), (&mut nothing, 1), workspaces, work);
}

/// As [`for_each_chunk_with`], of two outputs.
///
/// # Panics
/// If a length is 0, or there is no whole workspace.
#[doc(hidden)]
pub fn for_each_chunk_of_two_with<A: Send, B: Send, W: Send>(
    (a, a_len): (&mut [A], usize),
    (b, b_len): (&mut [B], usize),
    (workspaces, workspace_len): (&mut [W], usize),
    work: impl Fn(usize, &mut [A], &mut [B], &mut [W]) + Sync + Send,
) {
    let mut workspaces = workspaces.chunks_exact_mut(workspace_len);
    assert!(workspaces.len() > 0, "no workspace of {workspace_len} elements");
    #[cfg(feature = "parallel")]
    if a.len() > a_len && rayon::current_num_threads().min(workspaces.len()) > 1 {
        let (mut a, mut b) = ((a, a_len), (b, b_len));
        let shares = shares(chunks_of(&a).min(chunks_of(&b)), |share| {
            let chunks = first_chunks(&mut a, share.len()).zip(first_chunks(&mut b, share.len()));
            share.zip(chunks)
        });
        let times = rayon::current_num_threads().min(workspaces.len());
        let workspaces = Mutex::new(workspaces);
        let task = || {
            let workspace = soon(&workspaces).and_then(|mut workspaces| workspaces.next());
            if let Some(workspace) = workspace {
                let workspace = core::cell::RefCell::new(workspace);
                take(shares.get(), &|(i, (a, b))| work(i, a, b, &mut workspace.borrow_mut()));
            }
        };
        return joined(times, &task);
    }
    let Some(workspace) = workspaces.next() else { return };
    for (i, (a, b)) in a.chunks_mut(a_len).zip(b.chunks_mut(b_len)).enumerate() {
        work(i, a, b, workspace);
    }
}

/// Calls `work(i)` for each `i` below `count`.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// let seen = [const { AtomicUsize::new(0) }; 3];
/// exmy::parallel::for_each_index(3, |i| {
///     seen[i].fetch_add(i + 1, Ordering::Relaxed);
/// });
/// assert_eq!(seen.map(AtomicUsize::into_inner), [1, 2, 3]); // each once
/// ```
pub fn for_each_index(count: usize, work: impl Fn(usize) + Sync + Send) {
    indices(count, &work);
}

/// [`for_each_index`], as [`chunks`].
fn indices(count: usize, work: &(dyn Fn(usize) + Sync + Send)) {
    #[cfg(feature = "parallel")]
    if count > 1 && rayon::current_num_threads() > 1 {
        return taken(&shares(count, |share| share), work);
    }
    (0..count).for_each(work);
}

/// [`for_each_chunk`], compiled once for each type of element and not for each closure, which
/// itself is compiled once and not for either way. A call through a pointer costs nothing next to a
/// chunk.
fn chunks<T: Send>(
    data: &mut [T],
    chunk_len: usize,
    work: &(dyn Fn(usize, &mut [T]) + Sync + Send),
) {
    assert!(chunk_len > 0, "chunks of length 0");
    #[cfg(feature = "parallel")]
    if data.len() > chunk_len && rayon::current_num_threads() > 1 {
        let mut data = (data, chunk_len);
        let shares = shares(chunks_of(&data), |share| {
            let chunks = first_chunks(&mut data, share.len());
            share.zip(chunks)
        });
        return taken(&shares, |(i, chunk)| work(i, chunk));
    }
    for (i, chunk) in data.chunks_mut(chunk_len).enumerate() {
        work(i, chunk);
    }
}

/// [`for_each`], as [`chunks`].
fn each<I: Iterator<Item: Send> + Send>(items: I, work: &(dyn Fn(usize, I::Item) + Sync + Send)) {
    #[cfg(feature = "parallel")]
    if items.size_hint().1.is_none_or(|most| most > 1) && rayon::current_num_threads() > 1 {
        // No one knows where its items lie, so all threads have one share.
        let most = items.size_hint().1.unwrap_or(usize::MAX);
        let all = Mutex::new(Some(items.enumerate().fuse()));
        let task = || take(core::slice::from_ref(&all), &|(i, item)| work(i, item));
        return joined(rayon::current_num_threads().min(most), &task);
    }
    for (i, item) in items.enumerate() {
        work(i, item);
    }
}

/// Chunks of an output, and the elements of each.
#[cfg(feature = "parallel")]
type Chunks<'a, T> = (&'a mut [T], usize);

#[cfg(feature = "parallel")]
fn chunks_of<T>((data, chunk_len): &Chunks<'_, T>) -> usize {
    data.len().div_ceil(*chunk_len)
}

/// Takes the first `count` chunks off.
#[cfg(feature = "parallel")]
fn first_chunks<'a, T>(
    (data, chunk_len): &mut Chunks<'a, T>,
    count: usize,
) -> core::slice::ChunksMut<'a, T> {
    let end = data.len().min(count * *chunk_len);
    data.split_off_mut(..end).unwrap_or_default().chunks_mut(*chunk_len)
}

/// The shares of one call; they lie on the stack, so that a call asks the system for no memory.
#[cfg(feature = "parallel")]
struct Shares<I> {
    all: [Mutex<Option<I>>; MOST_SHARES],
    count: usize,
}

/// With more threads than this, several begin in the same share.
#[cfg(feature = "parallel")]
const MOST_SHARES: usize = 32;

#[cfg(feature = "parallel")]
impl<I> Shares<I> {
    fn get(&self) -> &[Mutex<Option<I>>] {
        &self.all[..self.count]
    }
}

/// `items` items in a share of adjacent ones for each thread.
#[cfg(feature = "parallel")]
fn shares<I>(items: usize, mut share: impl FnMut(Range<usize>) -> I) -> Shares<I> {
    let count = rayon::current_num_threads().min(MOST_SHARES).min(items);
    let end = |i: usize| (items as u128 * i as u128 / count as u128) as usize;
    let all = core::array::from_fn(|i| Mutex::new((i < count).then(|| share(end(i)..end(i + 1)))));
    Shares { all, count }
}

/// Each thread takes the items of its own share one by one, then those that are left of others.
///
/// rayon's own bridge from iterators makes two lists a call and knows no shares. A thread that waits
/// within `work` for others may take further items meanwhile.
#[cfg(feature = "parallel")]
fn taken<I: Iterator + Send>(shares: &Shares<I>, work: impl Fn(I::Item) + Sync) {
    if shares.count > 0 {
        joined(rayon::current_num_threads(), &|| take(shares.get(), &work));
    }
}

/// What one thread does of [`taken`].
#[cfg(feature = "parallel")]
fn take<I: Iterator>(shares: &[Mutex<Option<I>>], work: &impl Fn(I::Item)) {
    let own = rayon::current_thread_index().unwrap_or(0) % shares.len();
    let (before, after) = shares.split_at(own);
    for share in after.iter().chain(before) {
        // An iterator that panicked is not asked again; the panic reaches the caller.
        let next = || soon(share)?.as_mut()?.next();
        core::iter::from_fn(next).for_each(work);
    }
}

/// The lock, which is held for some nanoseconds at a time: a thread that slept until it is free would
/// be woken a thousand times later. `None` if a holder panicked.
#[cfg(feature = "parallel")]
fn soon<T>(of: &Mutex<T>) -> Option<std::sync::MutexGuard<'_, T>> {
    const TRIES: usize = 1000;
    for _ in 0..TRIES {
        match of.try_lock() {
            Ok(guard) => return Some(guard),
            Err(std::sync::TryLockError::WouldBlock) => core::hint::spin_loop(),
            Err(std::sync::TryLockError::Poisoned(_)) => return None,
        }
    }
    // Its holder may wait for a processor.
    of.lock().ok()
}

/// Calls `task` that many times, on as many threads as have nothing to do.
#[cfg(feature = "parallel")]
fn joined(times: usize, task: &(impl Fn() + Sync)) {
    match times {
        0 | 1 => task(),
        _ => {
            rayon::join(|| joined(times.div_ceil(2), task), || joined(times / 2, task));
        }
    }
}

/// Both results; a thread that has nothing to do takes the second while this one is at the first, and
/// what is divided in either goes to all of them.
///
/// ```
/// assert_eq!(exmy::parallel::both(|| 1 + 1, || "two"), (2, "two"));
/// ```
pub fn both<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    #[cfg(feature = "parallel")]
    if rayon::current_num_threads() > 1 {
        return rayon::join(first, second);
    }
    (first(), second())
}

/// Runs `work` with all threads awake, for calls to the functions of this module that follow each other
/// closely. A thread that finds nothing to do looks again at once, and sleeps only after a millisecond
/// without work. To wake a thread takes some 0.05 ms, as long as the whole work of many a call on
/// sixteen threads.
///
/// ```
/// assert_eq!(exmy::parallel::awake(|| 1 + 1), 2);
/// ```
pub fn awake<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(feature = "parallel")]
    if let (Some(own), 2..) = (rayon::current_thread_index(), rayon::current_num_threads()) {
        use core::sync::atomic::{AtomicBool, Ordering};

        /// Ends the others' waiting, also when work panics.
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let done = AtomicBool::new(false);
        return rayon::in_place_scope(|scope| {
            let wait = || look_for_work(|| done.load(Ordering::Relaxed));
            scope.spawn_broadcast(move |_, context| {
                if context.index() != own {
                    wait();
                }
            });
            let _done = Done(&done);
            work()
        });
    }
    work()
}

/// Takes what other threads hand out, until it is `done` or there was nothing for a millisecond.
#[cfg(feature = "parallel")]
fn look_for_work(done: impl Fn() -> bool) {
    const PATIENCE: std::time::Duration = std::time::Duration::from_millis(1);
    let mut idle: Option<std::time::Instant> = None;
    while !done() {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            idle = None;
            continue;
        }
        let now = std::time::Instant::now();
        if now - *idle.get_or_insert(now) > PATIENCE {
            return;
        }
        core::hint::spin_loop();
    }
}

/// How many threads [`for_each_chunk`] can use at this place.
///
/// ```
/// use exmy::parallel::{threads, with_threads};
///
/// let inside = with_threads(3, threads)?;
/// assert_eq!(inside, if cfg!(feature = "parallel") { 3 } else { 1 });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn threads() -> usize {
    #[cfg(feature = "parallel")]
    return rayon::current_num_threads();
    #[cfg(not(feature = "parallel"))]
    1
}

/// How many of `count` pieces of work, each with `elements` of working memory, to begin before
/// waiting for all: some for each thread, and one where they are large.
#[doc(hidden)]
pub fn at_once(count: usize, elements: usize) -> usize {
    const FOR_EACH: usize = 8;
    const ELEMENTS: usize = 1 << 22;
    let most = (ELEMENTS / elements.max(1)).clamp(threads(), FOR_EACH * threads());
    // As many in each part, and as many for each thread.
    let parts = count.div_ceil(most).max(1);
    let even = count.div_ceil(parts).next_multiple_of(threads());
    even.min(most / threads() * threads()).min(count)
}

/// Runs `work` with exactly `threads` threads available to the functions of this module.
///
/// ```
/// use exmy::parallel::{for_each_chunk, with_threads};
///
/// let fill = || {
///     let mut out = [0; 7];
///     for_each_chunk(&mut out, 3, |i, chunk| chunk.fill(i));
///     out
/// };
/// assert_eq!(with_threads(1, fill)?, with_threads(4, fill)?); // whatever the number
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the operating system refuses the threads.
pub fn with_threads<R: Send>(
    threads: usize,
    work: impl FnOnce() -> R + Send,
) -> std::io::Result<R> {
    #[cfg(feature = "parallel")]
    {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.map(|pool| pool.install(work)).map_err(std::io::Error::other)
    }
    #[cfg(not(feature = "parallel"))]
    {
        let _ = threads;
        Ok(work())
    }
}

#[cfg(all(test, feature = "parallel"))]
mod tests {
    use super::*;

    #[test]
    fn what_panics_is_heard() {
        let work = |i: usize| assert!(i != 7, "the seventh");
        let run = || with_threads(2, || for_each_index(20, work)).unwrap();
        let heard = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(heard.downcast_ref::<&str>(), Some(&"the seventh"));
        let items = (0..20).inspect(|i| assert!(*i != 3, "the third"));
        let run = || with_threads(2, || for_each(items, |_, _| ())).unwrap();
        let heard = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(heard.downcast_ref::<&str>(), Some(&"the third"));
        let run = || with_threads(3, || awake(|| for_each_index(20, work))).unwrap();
        let heard = std::panic::catch_unwind(run).unwrap_err();
        assert_eq!(heard.downcast_ref::<&str>(), Some(&"the seventh"));
    }

    /// Each chunk once and by its own index, whatever the threads, lengths and workspaces.
    #[test]
    fn shares_cover_every_chunk_once() {
        for threads in [1, 2, 3, 7] {
            for (len, chunk) in [(0, 3), (1, 3), (7, 3), (9, 3), (40, 1)] {
                let mut out = vec![0; len];
                let mut seen = vec![0; len];
                let mut workspaces = vec![0; 3];
                let expected: Vec<usize> = (0..len).map(|i| 1 + i / chunk).collect();
                let run = || {
                    for_each_chunk_with((&mut out, chunk), (&mut workspaces, 1), |i, out, own| {
                        own[0] = i + 1;
                        out.iter_mut().for_each(|out| *out += own[0]);
                    });
                    for_each_chunk(&mut seen, chunk, |i, out| {
                        out.iter_mut().for_each(|out| *out += i + 1);
                    });
                };
                with_threads(threads, run).unwrap();
                assert_eq!((&out, &seen), (&expected, &expected), "{threads} threads, {len}");
            }
        }
    }
}
