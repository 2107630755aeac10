use std::ffi::c_void;
use std::io::Write as _;

pub struct Test {
    pub name: &'static str,
    pub run: fn() -> Result<(), String>,
    pub panics: Option<&'static str>,
    /// Whether the test calls `tell_end` last.
    pub ends: bool,
}

/// What is wrong with a test.
struct Fault {
    /// Whether something was found to be other than the test wants it; else code panicked.
    differs: bool,
    message: String,
}

/// Whether the last panic was raised by a line of tests, as far as its hook was asked.
static IN_TESTS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Notes where each panic is raised, besides what is printed about it.
fn watch_panics() {
    let printed = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let in_tests = panic.location().is_some_and(|place| !place.file().ends_with("/answer.rs"));
        IN_TESTS.store(in_tests, std::sync::atomic::Ordering::SeqCst);
        printed(panic);
    }));
}

static ENDED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// What a test calls last in which a macro of the answer's could return.
pub fn tell_end() {
    ENDED.store(true, std::sync::atomic::Ordering::SeqCst);
}

/// What a test may return.
pub trait Told {
    fn told(self) -> Result<(), String>;
}

impl Told for () {
    fn told(self) -> Result<(), String> {
        Ok(())
    }
}

impl<T: Told, E: std::fmt::Debug> Told for Result<T, E> {
    fn told(self) -> Result<(), String> {
        match self {
            Ok(inner) => inner.told(),
            Err(error) => Err(format!("Error: {error:?}")),
        }
    }
}

#[repr(C)]
struct Limit {
    soft: u64,
    hard: u64,
}

extern "C" {
    fn fork() -> i32;
    fn wait4(child: i32, status: *mut i32, options: i32, usage: *mut [i64; 32]) -> i32;
    fn _exit(code: i32) -> !;
    fn mmap(place: *mut c_void, length: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut c_void;
    fn munmap(place: *mut c_void, length: usize) -> i32;
    fn mprotect(place: *mut c_void, length: usize, access: i32) -> i32;
    fn read(file: i32, place: *mut c_void, length: usize) -> isize;
    fn write(file: i32, place: *const c_void, length: usize) -> isize;
    fn open(path: *const u8, flags: i32, ...) -> i32;
    fn close(file: i32) -> i32;
    fn pipe(ends: *mut i32) -> i32;
    fn fcntl(file: i32, command: i32, ...) -> i32;
    fn dup2(from: i32, to: i32) -> i32;
    fn setrlimit(which: i32, limit: *const Limit) -> i32;
}

const SECRET: usize = 32;
const PAGE: usize = 65536;
const READ_WRITE: i32 = 3;
const SHARED: i32 = 1;
const PRIVATE: i32 = 2;
#[cfg(target_os = "linux")]
const ANONYMOUS: i32 = 0x20;
#[cfg(not(target_os = "linux"))]
const ANONYMOUS: i32 = 0x1000;
const CPU: i32 = 0;
const SET_FLAGS: i32 = 2;
const CLOSED_WHEN_EXECUTED: i32 = 1;
const LONGEST: usize = 2000;

/// What the child tells about one test.
#[repr(C)]
struct Record {
    state: std::sync::atomic::AtomicU8,
    micros: u64,
    length: usize,
    message: [u8; LONGEST],
}

unsafe fn memory(length: usize, flags: i32) -> *mut c_void {
    let place = mmap(std::ptr::null_mut(), length, READ_WRITE, flags | ANONYMOUS, -1, 0);
    if place as isize == -1 {
        _exit(97);
    }
    place
}

unsafe fn tell(secret: *const c_void, line: &str) {
    write(1, secret, SECRET);
    write(1, line.as_ptr() as *const c_void, line.len());
}

pub fn main(attempts: &'static [&'static [Test]]) {
    let mut arguments = std::env::args();
    // the program holds what the tests expect, and no test may read it there
    let _ = std::fs::remove_file(arguments.next().unwrap());
    let tests = attempts[arguments.next().unwrap().parse::<usize>().unwrap()];
    let mut left = arguments.next().unwrap().parse::<i64>().unwrap() * 1_000_000;
    unsafe {
        let secret = memory(PAGE, PRIVATE);
        let mut known = 0;
        while known < SECRET {
            let more = read(0, secret.add(known), SECRET - known);
            if more <= 0 {
                _exit(98);
            }
            known += more as usize;
        }
        let length = (tests.len() * std::mem::size_of::<Record>()).next_multiple_of(PAGE);
        let records = memory(length, SHARED) as *mut Record;
        tell(secret, " ready\n");
        let mut number = 0;
        while number < tests.len() {
            if left <= 0 {
                tell(secret, &format!(" {number} cpu 0 0 \n"));
                number += 1;
                continue;
            }
            let mut ends = [0i32; 2];
            let piped = pipe(ends.as_mut_ptr());
            let child = fork();
            if piped < 0 || child < 0 {
                _exit(99);
            }
            if child == 0 {
                munmap(secret, PAGE);
                close(ends[0]);
                fcntl(ends[1], SET_FLAGS, CLOSED_WHEN_EXECUTED);
                run(tests, number, records, length, left, ends[1]);
            }
            close(ends[1]);
            let began = std::time::Instant::now();
            let mut sign = 0u8;
            // one byte for each test that came to its end, and nothing more when the child did
            while read(ends[0], &mut sign as *mut u8 as *mut c_void, 1) > 0 {
                if number == tests.len() {
                    continue;
                }
                let told = &*records.add(number);
                let state = told.state.load(std::sync::atomic::Ordering::SeqCst);
                if state != 0 {
                    let word = match state {
                        b'p' => "passed",
                        b'd' => "differs",
                        _ => "failed",
                    };
                    let message: String =
                        told.message[..told.length.min(LONGEST)].iter().map(|byte| format!("{byte:02x}")).collect();
                    tell(secret, &format!(" {number} {word} 0 {} {message}\n", told.micros));
                    number += 1;
                }
            }
            close(ends[0]);
            let mut status = 0;
            let mut usage = [0i64; 32];
            wait4(child, &mut status, 0, &mut usage);
            // seconds and microseconds of user and system time; macOS leaves the upper half of the latter unset
            left -= (usage[0] + usage[2]) * 1_000_000 + (usage[1] & 0xffff_ffff) + (usage[3] & 0xffff_ffff);
            if number < tests.len() {
                let (word, code) = match status & 0x7f {
                    24 => ("cpu", 0),
                    9 if left <= 0 => ("cpu", 0),
                    0 => ("exited", status >> 8 & 0xff),
                    signal => ("killed", signal),
                };
                tell(secret, &format!(" {number} {word} {code} {} \n", began.elapsed().as_micros()));
                number += 1;
            }
        }
        tell(secret, " finished\n");
        _exit(0);
    }
}

unsafe fn run(
    tests: &'static [Test],
    first: usize,
    records: *mut Record,
    length: usize,
    left: i64,
    finished: i32,
) -> ! {
    let nothing = open(b"/dev/null\0".as_ptr(), 0);
    if nothing < 0 {
        close(0);
    } else {
        dup2(nothing, 0);
        close(nothing);
    }
    dup2(2, 1);
    let seconds = (left as u64).div_ceil(1_000_000);
    setrlimit(CPU, &Limit { soft: seconds, hard: seconds + 1 });
    watch_panics();
    for (number, test) in tests.iter().enumerate().skip(first) {
        mprotect(records as *mut c_void, length, 0);
        let started = std::time::Instant::now();
        let told = judged(test);
        let _ = std::io::stdout().flush();
        let micros = started.elapsed().as_micros() as u64;
        mprotect(records as *mut c_void, length, READ_WRITE);
        let record = &mut *records.add(number);
        record.micros = micros;
        let mut state = b'p';
        if let Err(fault) = &told {
            record.length = fault.message.len().min(LONGEST);
            record.message[..record.length].copy_from_slice(&fault.message.as_bytes()[..record.length]);
            state = if fault.differs { b'd' } else { b'f' };
        }
        // last, and once: an answer that writes to the pipe has the record read at any moment
        record.state.store(state, std::sync::atomic::Ordering::SeqCst);
        write(finished, b".".as_ptr() as *const c_void, 1);
    }
    _exit(0);
}

fn judged(test: &'static Test) -> Result<(), Fault> {
    let differs = |message: String| Err(Fault { differs: true, message });
    ENDED.store(false, std::sync::atomic::Ordering::SeqCst);
    // as cargo runs them: each in a thread of its own, with the stack of a thread
    let ended = std::thread::Builder::new()
        .name(test.name.to_string())
        .spawn(|| (test.run)())
        .map_err(|error| Fault { differs: false, message: format!("no thread for the test: {error}") })?
        .join();
    let payload = match (ended, test.panics) {
        (Ok(Ok(())), Some(_)) => return differs("test did not panic as expected".to_string()),
        (Ok(Ok(())), _) if test.ends && !ENDED.load(std::sync::atomic::Ordering::SeqCst) => {
            return differs("assertion failed: the test was left before its end".to_string());
        }
        (Ok(told), _) => return told.or_else(differs),
        (Err(payload), _) => payload,
    };
    let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text.to_string(),
        (_, Some(text)) => text.clone(),
        _ => "panicked".to_string(),
    };
    // dropping it would run code of the answer here
    std::mem::forget(payload);
    match test.panics {
        Some(expected) if message.contains(expected) => Ok(()),
        Some(expected) => differs(format!("panic did not contain {expected:?}: {message}")),
        // what an answer says in its own panics may begin alike
        None => Err(Fault {
            differs: IN_TESTS.load(std::sync::atomic::Ordering::SeqCst) && message.starts_with("assertion"),
            message,
        }),
    }
}
