// Reading, checking and generating go as deep as a program is nested; nobody writes one that is deeper than the stack.

export function isStackOverflow(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes('call stack')
}
