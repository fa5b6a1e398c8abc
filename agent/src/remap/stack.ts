// Reading, checking and generating recurse as deep as a program is nested. A program that nests deeper than the stack is refused.

/**
 * Whether an error is a stack overflow. V8 gives it neither a class nor a code: its RangeError differs from that of `'x'.repeat(-1)` in
 * the message alone. Every other RangeError is a fault of the compiler and must not pass as a fault of the program.
 */
export function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes('call stack')
}
