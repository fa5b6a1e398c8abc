// A chain of programs with the processing of a job. Parts that compile together become one transform, in which comments name the stages.
// A part that does not compile becomes a gap, and a comment keeps its text.

import { compileProgram, multilineProblems } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { alloyStages } from './alloy-stages.ts'
import { type Part, type Report, textIn } from './context.ts'
import { refusedStages } from './refusals.ts'
import { translateRegex } from './regex.ts'
import type { Lines, Scope } from './stage.ts'
import { stages } from './stages.ts'
import { isMap, itemsOf, millisecondsOf, type Place, type Tree, textOf } from './tree.ts'

/** The option `multiline` of an `orchestrator_logs` source. A `file` source has the same with other names. */
export interface Joined {
  readonly start: string
  readonly timeoutMs: number
}

const allStages = [...stages, ...alloyStages]

interface Piece {
  readonly title: string
  readonly place: Place
  readonly lines: Lines
}

/** Maximum length of a program in characters. The next part begins another program. */
const maxLength = 16_000

export class Chain {
  readonly #report: Report
  readonly #isPods: boolean
  readonly #pieces: Piece[] = []
  #matches = 0

  constructor(report: Report, isPods: boolean) {
    this.#report = report
    this.#isPods = isPods
  }

  /** Adds the lines of a part. A part that does not compile becomes a gap. */
  add(title: string, place: Place, lines: Lines): void {
    if (lines.length > 0) this.#pieces.push({ title, place, lines: this.#checked(title, place, lines) })
  }

  #checked(title: string, place: Place, lines: Lines): Lines {
    const compiled = compileProgram(lines.join('\n'))
    if (compiled.ok) return lines
    const reason = `the program for it is not valid: ${compiled.diagnostics[0]?.message ?? compiled.rendered}`
    this.#report.gap(place, title, reason, 'Correct the program in the comment.')
    return [
      `# GAP: ${reason}. Events pass unchanged. The program:`,
      ...lines.join('\n').replace(/^/gm, '# ').split('\n'),
    ]
  }

  /** Adds the stages of a list; each is a name with its options. */
  addStages(list: Tree | undefined): void {
    for (const part of partsOf(list)) {
      if (part.name === 'multiline') continue
      const whole = this.#lines(part)
      if (part.name !== 'match' || compileProgram(whole.join('\n')).ok) {
        this.add(`stage ${part.name}`, part, whole)
      } else this.#addApart(part)
    }
  }

  /** A `match` whose stages do not fit into one program: a variable keeps its condition, and each stage checks it. */
  #addApart(part: Part): void {
    const flag = `%matched_${++this.#matches}`
    const inner = partsOf(isMap(part.tree) ? part.tree.value.get('stages') : undefined)
    const [head = '', begin = ''] = this.#lines(part, () => [])
    const condition = head.replace(/^if /, '').replace(/ \{$/, '')
    this.add('stage match', part, [`${flag} = ${condition}`, `if ${flag} == true {`, begin, '}'])
    for (const stage of inner) {
      const lines = this.#lines(stage)
      this.add(`stage ${stage.name}`, stage, [`if ${flag} == true {`, ...lines.map((line) => `  ${line}`), '}'])
    }
  }

  #lines(part: Part, nested?: () => Lines): Lines {
    const stage = allStages.find(({ name }) => name === part.name)
    const statements = 'Replace the stage with statements.'
    const comment = (at: Part, reason: string): Lines => [
      `# GAP: the stage \`${at.name}\` (${at.file}:${at.line}) has no counterpart: ${reason}. Events pass unchanged.`,
    ]
    const refuse = (at: Part, reason: string, nearest = statements): Lines => {
      this.#report.gap(at, `stage ${at.name}`, reason, nearest)
      return comment(at, reason)
    }
    if (stage === undefined) {
      const known = refusedStages.find(({ name }) => name === part.name)
      if (part.name === 'multiline') {
        return refuse(
          part,
          'the source joins lines, in the same way for all of its events',
          'Read these pods with a separate source that sets `multiline`.',
        )
      }
      this.#report.missing(part, `stage ${part.name}`, known, 'stage', statements)
      return comment(part, known?.reason ?? 'the stage is unknown')
    }
    if (nested === undefined) {
      if (stage.takesNames !== true) this.#report.options(part, stage)
      if (stage.expresses !== true) this.#reportVariables(part, part.tree)
    }
    const scope: Scope = {
      report: this.#report,
      isPods: this.#isPods,
      refuse,
      nested:
        nested ??
        ((outer) =>
          partsOf(isMap(outer.tree) ? outer.tree.value.get('stages') : undefined).flatMap((inner) =>
            this.#titled(inner, this.#lines(inner)),
          )),
    }
    return stage.build(part, scope)
  }

  #titled(part: Part, lines: Lines): Lines {
    return [`# ${part.name}`, ...this.#checked(`stage ${part.name}`, part, lines)]
  }

  #reportVariables(part: Part, tree: Tree): void {
    this.#report.literal(tree, `stage ${part.name}`, textOf(tree) ?? '')
    if (isMap(tree)) for (const [name, item] of tree.value) if (name !== 'stages') this.#reportVariables(part, item)
  }

  /** The transforms; as few as possible. */
  steps(): Step[] {
    const programs: string[] = []
    for (const { title, place, lines } of this.#pieces) {
      const text = `# ${title} (${place.file}:${place.line})\n${lines.join('\n')}`
      const last = programs.at(-1)
      const joined = last === undefined ? undefined : `${last}\n\n${text}`
      if (joined !== undefined && joined.length <= maxLength && compileProgram(joined).ok)
        programs[programs.length - 1] = joined
      else programs.push(text)
    }
    return programs.map((text) => ({ type: 'remap', text }))
  }
}

/** The stages of a list; each item is a name with its options. */
export function partsOf(list: Tree | undefined): readonly Part[] {
  return itemsOf(list).flatMap((item) =>
    isMap(item) ? [...item.value].map(([name, tree]) => ({ file: item.file, line: item.line, name, tree })) : [],
  )
}

const multilineOptions = {
  firstline: '`multiline.custom.start`',
  max_wait_time: '`multiline.custom.timeoutMs`',
} as const
/** For the guide only: the stage becomes an option of the source. */
export const multilineStage = {
  name: 'multiline',
  becomes: '`multiline` of the source; a gap inside of `match`',
  options: multilineOptions,
  itself: {
    max_lines: 'a source limits the size of an event, not its number of lines',
    trim_newlines: 'lines have no line feeds at their ends',
  },
} as const

/** The stage `multiline` of a pipeline as an option of the source, if possible. */
export function joinedBy(list: Tree | undefined, report: Report): Joined | undefined {
  let joined: Joined | undefined
  for (const [index, part] of partsOf(list).entries()) {
    if (part.name !== 'multiline') continue
    report.options(part, multilineStage)
    const before = partsOf(list)
      .slice(0, index)
      .filter(({ name }) => ['replace', 'output', 'decolorize', 'pack', 'drop', 'match'].includes(name))
    if (before.length > 0) {
      report.gap(
        part,
        'stage multiline',
        `the stages before it (${before.map(({ name }) => name).join(', ')}) receive joined lines now, because the source joins them`,
        'Compare a few events with `penstock run`.',
      )
    }
    const regex = translateRegex(textIn(part, 'firstline') ?? '')
    const start = regex.ok ? regex.text.replaceAll('\\x27', "'") : ''
    const wait = millisecondsOf(textIn(part, 'max_wait_time') ?? '3s') ?? 3000
    const found: Joined = { start, timeoutMs: Math.max(1, Math.round(wait)) }
    const [problem] = multilineProblems({ ...fileMultiline(found) })
    if (!regex.ok || start === '' || problem !== undefined || joined !== undefined) {
      const reason = regex.ok ? (problem?.message ?? 'a source joins lines with one set of rules') : regex.reason
      report.gap(part, 'stage multiline', reason, 'Set `multiline.custom` of the source: start, condition and mode.')
      continue
    }
    report.replaced(
      part,
      'stage multiline',
      'the source joins lines, separately for each container and stream or for each file',
      'An event ends before the next first line, after the timeout, or at the size limit of the source.',
    )
    joined = found
  }
  return joined
}

export function podMultiline({ start, timeoutMs }: Joined): Readonly<Record<string, unknown>> {
  return { custom: { start, condition: start, mode: 'halt_before', timeoutMs } }
}

export function fileMultiline({ start, timeoutMs }: Joined) {
  return { start_pattern: start, condition_pattern: start, mode: 'halt_before', timeout_ms: timeoutMs } as const
}
