// Texts in regular expressions.

/** A pattern that matches only the text. A literal of a program needs further escapes. */
export const escapedText = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
