// Parsing, checking and generating recurse as deeply as a program is nested. A program that would overflow the stack is rejected.

/**
 * Whether an error is a stack overflow. V8 gives it neither a class nor a code: its RangeError differs from that of `'x'.repeat(-1)`
 * only in the message. Any other RangeError is a bug of the compiler and must not be reported as an error in the program.
 */
export function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes('call stack')
}
