// The report of a conversion: a row for each gap.

import { renderProblems } from '@penstock/agent/config'
import type { Gap } from '../migrate/draft.ts'

export const reportFormats = ['text', 'json', 'markdown'] as const

/** Rows in file order, each once; empty text if there are none. */
export function gapReport(all: readonly Gap[], format: (typeof reportFormats)[number]): string {
  const gaps = [...new Map(all.map((gap) => [JSON.stringify(rowOf(gap)), gap])).values()]
  if (format === 'json') return JSON.stringify(gaps.map(rowOf), undefined, 2)
  if (gaps.length === 0) return ''
  if (format === 'markdown') {
    const cell = (text: string | number) => String(text).replaceAll('|', '\\|').replaceAll('\n', ' ')
    const rows = gaps.map((gap) => {
      const { file, line, column, subject, kind, reason, nearest } = rowOf(gap)
      const place = `${file}:${line}${column === undefined ? '' : `:${column}`}`
      return `| ${[place, subject, kind, reason, nearest].map(cell).join(' | ')} |`
    })
    return ['| Place | Subject | Kind | Reason | Nearest equivalent |', '|---|---|---|---|---|', ...rows].join('\n')
  }
  return renderProblems(
    gaps.map(({ file, line, column = 1, subject, reason, nearest, rendered, isReplaced, isUnreadable }) => ({
      severity: isUnreadable === true ? 'error' : 'warning',
      informational: isReplaced === true,
      path: subject,
      message: reason,
      help: nearest,
      file,
      line,
      column,
      rendered,
    })),
  )
}

function rowOf({ file, line, column, subject, reason, nearest, isReplaced, isUnreadable }: Gap) {
  const kind = isUnreadable === true ? 'error' : isReplaced === true ? 'replaced' : 'gap'
  return { file, line, ...(column !== undefined && { column }), subject, kind, reason, nearest }
}
