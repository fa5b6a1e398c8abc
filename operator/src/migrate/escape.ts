// Texts in regular expressions and templates.

/** A pattern that matches only the text. A literal of a program needs further escapes. */
export const escapedText = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Escapes a text so that it is a template without fields. */
export const literalTemplate = (text: string) => text.replaceAll('{{', '\\{{').replaceAll('%', '%%')
