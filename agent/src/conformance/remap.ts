// Runs the recorded cases of the remap language in this process. Only outcomes decide whether a case passes; types, warnings and spans
// have separate scores.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type EventMetadata, noMetadata } from '../event/log.ts'
import type { Value, ValueObject } from '../event/value.ts'
import { ByteOffsets, type Diagnostic } from '../remap/diagnostics.ts'
import { isFailure } from '../remap/function.ts'
import { fieldText, type Kind, kinds } from '../remap/kind.ts'
import { compileProgram } from '../remap/program.ts'
import { fromTagged, type Tagged, toTagged } from '../remap/tagged.ts'

interface Label {
  readonly primary: boolean
  readonly span: readonly [number, number]
}

interface Expected {
  readonly ok?: Tagged
  readonly event?: Tagged
  readonly metadata?: Tagged
  readonly compile_error?: readonly number[]
  readonly diagnostics?: readonly { code: number; labels: readonly Label[] }[]
  readonly runtime_error?: string
  readonly abort?: string | null
  readonly compiled?: boolean
  readonly warnings?: readonly number[]
  readonly warning_diagnostics?: readonly { code: number; labels: readonly Label[] }[]
  readonly type?: string
  readonly event_type?: unknown
  readonly info?: { fallible: boolean; abortable: boolean; queries: readonly string[]; assignments: readonly string[] }
}

interface Case {
  readonly id: string
  readonly program: string
  readonly event?: Tagged
  readonly metadata?: Tagged
  readonly timezone?: string
  readonly read_only?: boolean
  readonly event_kind?: 'any' | 'empty_object'
  readonly want?: readonly string[]
  readonly expect: Expected
}

interface Outcome {
  /** The part of `expect` that failed; undefined if the case passed. */
  readonly failure: string | undefined
  readonly scores: readonly (readonly [score: string, met: boolean, detail: string])[]
}

export async function run(dir: string, stems: readonly string[]): Promise<{ passed: number; failed: number }> {
  let passed = 0
  let failed = 0
  const scores = new Map<string, { met: number; missed: string[] }>()
  for (const stem of stems) {
    let here = 0
    let all = 0
    for (const line of (await readFile(join(dir, `${stem}.jsonl`), 'utf8')).split('\n')) {
      if (line === '') continue
      all++
      const test = JSON.parse(line) as Case
      let outcome: Outcome
      try {
        outcome = runCase(test)
      } catch (error) {
        outcome = { failure: `threw ${(error as Error).stack}`, scores: [] }
      }
      if (outcome.failure === undefined) here++
      else process.stdout.write(`FAIL ${test.id}\n  ${JSON.stringify(test.program)}\n  ${outcome.failure}\n`)
      for (const [score, met, detail] of outcome.scores) {
        const sum = scores.get(score) ?? { met: 0, missed: [] }
        scores.set(score, sum)
        if (met) sum.met++
        else sum.missed.push(`${test.id} ${JSON.stringify(test.program)}\n    ${detail}`)
      }
    }
    process.stdout.write(`${stem}: ${here} of ${all}\n`)
    passed += here
    failed += all - here
  }
  for (const [score, { met, missed }] of scores) {
    for (const detail of missed) process.stdout.write(`${score} differ: ${detail}\n`)
    process.stdout.write(`${score}: ${met} of ${met + missed.length}\n`)
  }
  return { passed, failed }
}

function runCase(test: Case): Outcome {
  const { expect, want = [] } = test
  const scores: [string, boolean, string][] = []
  const compiled = compileProgram(test.program, {
    timezone: test.timezone ?? 'UTC',
    readOnly: test.read_only ?? false,
    eventKind:
      test.event_kind === 'any' ? kinds.any : test.event_kind === 'empty_object' ? kinds.objectOf({}) : kinds.object,
    keepResult: true,
    network: true,
  })
  const differ = (name: string, expected: unknown, actual: unknown): string =>
    `${name}: expected ${JSON.stringify(expected)}, got ${JSON.stringify(actual)}`
  if (!compiled.ok) {
    const codes = compiled.diagnostics.map((diagnostic) => diagnostic.code)
    if (expect.diagnostics !== undefined) {
      const actual = spansOf(test.program, compiled.diagnostics)
      scores.push(['spans', sameSpans(expect.diagnostics, actual), differ('spans', expect.diagnostics, actual)])
    }
    if (isDeepStrictEqual(codes, expect.compile_error)) return { failure: undefined, scores }
    return { failure: differ('outcome', shortOf(expect), { compile_error: codes }), scores }
  }
  const warnings = compiled.warnings.map((warning) => warning.code)
  if (expect.compile_error === undefined) {
    const expected = expect.warnings ?? []
    scores.push(['warnings', isDeepStrictEqual(warnings, expected), differ('warnings', expected, warnings)])
  }
  if (expect.warning_diagnostics !== undefined) {
    const actual = spansOf(test.program, compiled.warnings)
    scores.push([
      'spans',
      sameSpans(expect.warning_diagnostics, actual),
      differ('spans', expect.warning_diagnostics, actual),
    ])
  }
  const { program } = compiled
  if (want.includes('type')) {
    const type = program.kind.toString()
    scores.push(['types', type === expect.type, differ('type', expect.type, type)])
    const eventType = kindForm(program.eventKind)
    const same = isDeepStrictEqual(eventType, expect.event_type)
    scores.push(['types', same, differ('event type', expect.event_type, eventType)])
  }
  if (expect.info !== undefined && !isDeepStrictEqual({ ...program.facts }, { ...expect.info })) {
    return { failure: differ('info', expect.info, program.facts), scores }
  }
  if (want.includes('compile_only')) {
    return { failure: expect.compiled === true ? undefined : differ('outcome', expect, 'compiled'), scores }
  }
  const metadata: EventMetadata =
    test.metadata === undefined ? noMetadata : { value: fromTagged(test.metadata) as ValueObject, secrets: {} }
  const result = program.run(fromTagged(test.event ?? {}) as ValueObject, metadata, true)
  let actual: Expected
  if (isFailure(result)) {
    actual = result.outcome === 'abort' ? { abort: result.given } : { runtime_error: result.message }
  } else {
    actual = { ok: toTagged(result), event: toTagged(program.frame.root) }
    if (expect.metadata !== undefined) actual = { ...actual, metadata: toTagged(program.frame.metadata as Value) }
  }
  const expected: Expected = {}
  for (const key of ['ok', 'event', 'metadata', 'runtime_error', 'abort', 'compile_error', 'compiled'] as const) {
    if (expect[key] !== undefined) Object.assign(expected, { [key]: normal(expect[key] as Tagged) })
  }
  const failure = isDeepStrictEqual(normal(actual as Tagged), expected)
    ? undefined
    : differ('outcome', expected, actual)
  return { failure, scores }
}

function shortOf(expect: Expected): unknown {
  const { type: _type, event_type: _eventType, diagnostics: _diagnostics, warnings: _warnings, ...rest } = expect
  return rest
}

/** Normalizes a tagged value, so that floats and instants compare by value, and key order does not matter. */
function normal(tagged: Tagged): unknown {
  if (tagged === null || typeof tagged !== 'object') return tagged
  if (Array.isArray(tagged)) return tagged.map(normal)
  const keys = Object.keys(tagged).sort()
  const text = tagged['$float']
  if (keys.length === 1 && typeof text === 'string') return { $float: Number(text.replace('inf', 'Infinity')) }
  const instant = tagged['$timestamp']
  if (keys.length === 1 && typeof instant === 'string')
    return { $timestamp: String(toTagged(fromTagged(tagged))) && toTagged(fromTagged(tagged)) }
  return Object.fromEntries(keys.map((key) => [key, normal(tagged[key] as Tagged)]))
}

type Spans = readonly { code: number; labels: readonly Label[] }[]

function spansOf(source: string, diagnostics: readonly Diagnostic[]): Spans {
  const bytes = new ByteOffsets(source)
  return diagnostics.map(({ code, labels }) => ({
    code,
    labels: labels.map(({ primary, span }) => ({ primary, span: bytes.span(span) })),
  }))
}

function sameSpans(expected: Spans, actual: Spans): boolean {
  return isDeepStrictEqual(expected, actual)
}

/** A kind in the notation of the cases: a name, a list of names, or the known and unknown elements. */
function kindForm(kind: Kind): unknown {
  if (kind.isAny) return 'any'
  const parts: unknown[] = []
  const basic = ['string', 'integer', 'float', 'boolean', 'timestamp', 'regex', 'null', 'undefined'] as const
  for (const name of basic) if (kind.overlaps(kinds[name])) parts.push(name)
  if (kind.array !== undefined) {
    parts.push({
      array: collectionForm(
        [...kind.array.known].map(([at, item]) => [String(at), item]),
        kind.array.unknown,
      ),
    })
  }
  if (kind.object !== undefined) {
    parts.push({
      object: collectionForm(
        [...kind.object.known].map(([name, field]) => [fieldText(name), field]),
        kind.object.unknown,
      ),
    })
  }
  return parts.length === 1 ? parts[0] : parts
}

function collectionForm(known: readonly (readonly [string, Kind])[], unknown: Kind | undefined): unknown {
  return {
    known: Object.fromEntries(known.map(([name, kind]) => [name, kindForm(kind)])),
    unknown: unknown === undefined ? 'none' : kindForm(unknown),
  }
}
