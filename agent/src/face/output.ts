// Output of commands, except events: tables, screens, pages, completion scripts.

export { pageText } from '../cli/page-text.ts'
export { type Field, outputFormats, rowsText, rowText } from '../cli/rows.ts'
export { type CompletionCommand, type CompletionFlag, completionScript, shells } from '../command-line/completion.ts'
export { type Drawing, LiveScreen, type ScreenSize } from '../command-line/live-screen.ts'
export { RowKeys, tableHelp } from '../command-line/row-keys.ts'
export { absentSinks, absentSources, absentTransforms, plainName, replacedTransforms } from '../config/elsewhere.ts'
export { prettyLog, type Screen, type Style, styled } from '../formats/pretty.ts'
export { watchFiles } from '../topology/watch.ts'

/**
 * Prints the page of a component, function, metric or error. Imported on use, because it loads all components.
 * @param others names that the caller explains itself, for suggestions @param ownText the caller's text about the name
 */
export async function explain(words: string[], others: readonly string[], ownText?: string): Promise<number> {
  const { run } = await import('../cli/explain.ts')
  return run(words, '`penstock list` prints the components.', others, ownText)
}

/** Prints the component types. Imported on use, because it loads all components. */
export async function list(words: string[]): Promise<number> {
  const { run } = await import('../cli/list.ts')
  return run(words, 'penstock explain')
}

/** All pages of `explain`. Imported on use, because it loads all components. */
export async function referencePages() {
  const pages = await import('../cli/pages.ts')
  return pages.referencePages()
}
