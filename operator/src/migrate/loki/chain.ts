// A chain of programs with the processing of a job. Parts that compile together become one transform, in which comments name the stages.
// A part that does not compile becomes a gap, and a comment keeps its text.

import { compileProgram } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { alloyStages } from './alloy-stages.ts'
import { type Part, type Report, textIn } from './context.ts'
import { onlyName, readsFirstLine } from './joining.ts'
import { refusedStages } from './refusals.ts'
import { selectorCondition } from './selector.ts'
import { type Lines, partsOf, type Scope, type Stage } from './stage.ts'
import { stages } from './stages.ts'
import { isMap, type Place, plain, type Tree, textOf } from './tree.ts'

/** Keeps the events of one source for a `match` that joins lines. */
const only: Stage = {
  name: onlyName,
  becomes: '`abort` for other events',
  options: { selector: 'the condition' },
  build: (part) => {
    const condition = selectorCondition(textIn(part, 'selector') ?? '')
    return [`if !(${condition.ok ? condition.text : 'true'}) { abort }`]
  },
}

const allStages = [...stages, ...alloyStages, only]

/** The event fields for joined lines while stages read the first one. */
const beginFirstLine = ['%joined_lines = .message', '.message = replace(string!(.message), r\'(?s)\\n.*$\', "")']
const endFirstLine = ['.message = %joined_lines']

/** Makes several events of one with more lines than the limit. */
const limitLines = (limit: number): Lines => [
  'lines = split(string!(.message), "\\n")',
  `if length(lines) > ${limit} {`,
  '  whole = object!(.)',
  '  messages = []',
  '  message = []',
  '  for_each(lines) -> |_index, line| {',
  '    message = push(message, line)',
  `    if length(message) == ${limit} {`,
  '      messages = push(messages, join!(message, "\\n"))',
  '      message = []',
  '    }',
  '  }',
  '  if !is_empty(message) { messages = push(messages, join!(message, "\\n")) }',
  '  . = map_values(messages) -> |text| { set!(whole, ["message"], text) }',
  '}',
]

interface Piece {
  readonly title: string
  readonly place: Place
  readonly lines: Lines
  /** Whether its program ends with it, because it makes several events of one. */
  readonly isLast?: true
}

/** Maximum length of a program in characters. The next part begins another program. */
const maxLength = 16_000

export class Chain {
  readonly #report: Report
  readonly #isPods: boolean
  readonly #pieces: Piece[] = []
  #matches = 0
  #joinsMatches = false
  #words: ReadonlySet<string> = new Set()

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

  /**
   * Adds the stages of a list; each is a name with its options.
   * @param joins whether the source joins the lines for a stage `multiline` of the list
   */
  addStages(list: Tree | undefined, joins = true): void {
    const parts = partsOf(list)
    this.#words = new Set(list === undefined ? [] : JSON.stringify(plain(list)).match(/\w+/g))
    const at = parts.findIndex(({ name }) => name === 'multiline' || name === onlyName)
    this.#joinsMatches = parts[at]?.name === onlyName
    const isWrapped = joins && at > 0 && readsFirstLine(parts.slice(0, at))
    if (isWrapped) this.add('the first line', parts[at] as Part, beginFirstLine)
    for (const [index, part] of parts.entries()) {
      if (isWrapped && index === at) this.add('all lines', part, endFirstLine)
      if (part.name === 'multiline' && joins) {
        this.#addLimit(part)
        continue
      }
      const whole = this.#lines(part)
      if (part.name !== 'match' || compileProgram(whole.join('\n')).ok) {
        this.add(`stage ${part.name}`, part, whole)
      } else this.#addApart(part)
      // Stages before `multiline` must get the first line, which the later parts of an event lack.
      const inner = part.name === onlyName ? this.#stagesOf(parts[index + 1]) : []
      const joining = inner.find(({ name }) => name === 'multiline')
      if (joining === undefined) continue
      if (joining === inner[0]) this.#addLimit(joining)
      else {
        const reason = 'the stages in front of it need the first line, so the program does not limit the lines'
        this.#report.replaced(joining, 'stage multiline: max_lines', reason, 'Move `multiline` in front of them.')
      }
    }
  }

  /** The old agents join a limited number of lines. The next line begins another event. */
  #addLimit(part: Part): void {
    const limit = Number(textIn(part, 'max_lines') ?? 128)
    if (!Number.isInteger(limit) || limit < 1) return
    this.#pieces.push({ title: 'stage multiline', place: part, lines: limitLines(limit), isLast: true })
  }

  #stagesOf(part: Part | undefined): readonly Part[] {
    return partsOf(isMap(part?.tree) ? part.tree.value.get('stages') : undefined)
  }

  /** A `match` whose stages do not fit into one program: a variable keeps its condition, and each stage checks it. */
  #addApart(part: Part): void {
    const flag = `%matched_${++this.#matches}`
    const inner = this.#innerOf(part)
    const [head = '', begin = ''] = this.#lines(part, () => [])
    const condition = head.replace(/^if /, '').replace(/ \{$/, '')
    this.add('stage match', part, [`${flag} = ${condition}`, `if ${flag} == true {`, begin, '}'])
    for (const stage of inner) {
      const [title, at, lines] =
        'name' in stage ? [`stage ${stage.name}`, stage, this.#lines(stage)] : ['stage multiline', part, stage]
      this.add(title, at, [`if ${flag} == true {`, ...lines.map((line) => `  ${line}`), '}'])
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
          'a source joins lines before all other stages, in the same way for all of its events',
          'Read these files or pods with a separate source that sets `multiline`.',
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
      mentions: (word) => this.#words.has(word),
      refuse,
      nested:
        nested ??
        ((outer) =>
          this.#innerOf(outer).flatMap((inner) => ('name' in inner ? this.#titled(inner, this.#lines(inner)) : inner))),
    }
    return stage.build(part, scope)
  }

  /** The stages below a `match`. If the source joins lines for them, those before `multiline` may need the first line only. */
  #innerOf(part: Part): readonly (Part | Lines)[] {
    const inner = this.#stagesOf(part)
    const at = inner.findIndex(({ name }) => name === 'multiline')
    if (!this.#joinsMatches || at < 0) return inner
    const [before, after] = [inner.slice(0, at), inner.slice(at + 1)]
    return readsFirstLine(before) ? [beginFirstLine, ...before, endFirstLine, ...after] : [...before, ...after]
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
    let isClosed = false
    for (const { title, place, lines, isLast = false } of this.#pieces) {
      const text = `# ${title} (${place.file}:${place.line})\n${lines.join('\n')}`
      const last = programs.at(-1)
      const joined = last === undefined || isClosed ? undefined : `${last}\n\n${text}`
      isClosed = isLast
      if (joined !== undefined && joined.length <= maxLength && compileProgram(joined).ok)
        programs[programs.length - 1] = joined
      else programs.push(text)
    }
    return programs.map((text) => ({ type: 'remap', text }))
  }
}
