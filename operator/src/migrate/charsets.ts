// Names of character sets.

/** Whether a source of files knows a character set. */
export function isCharset(name: string): boolean {
  try {
    new TextDecoder(name)
    return true
  } catch {
    return false
  }
}
