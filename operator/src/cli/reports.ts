// Reports of `lint` and `test` for programs that show them beside the code: SARIF 2.1.0 for code scanning, JUnit XML for test
// reports. Paths are relative to the working directory, as those programs expect.

import { isAbsolute, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { renderedDiagnostic, type UnitTestOutcome } from '@penstock/agent/config'
import type { Problem } from '@penstock/agent/errors'
import { version } from '@penstock/agent/program'
import type { Log, ReportingDescriptor, Result } from 'sarif'
import type { PlacedDiagnostic } from '../compile/compiled.ts'

const sarifSchema = 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json'

/** The description of each class of problem. */
const ruleTexts: Readonly<Record<string, string>> = {
  Resource: 'A file or resource is unreadable.',
  InvalidConfig: 'An option or field is wrong.',
  CompileFailed: 'A program or condition does not compile.',
  TestsFailed: 'A test in the resource fails.',
  ForbiddenOption: 'A rule for namespaces forbids it.',
  SourceNotFound: 'A `ref` names a Source that does not exist.',
  SinkNotFound: 'A `ref` names a Sink that does not exist.',
  RefNotPermitted: 'The owner of a shared object has not granted it to the namespace.',
  SecretNotFound: 'A Secret or ConfigMap does not exist.',
  SecretKeyNotFound: 'A Secret or ConfigMap does not have this key.',
}

/** The class of a problem: the reason in the condition. */
function ruleOf(problem: Problem): string {
  const reason = (problem as { readonly reason?: unknown }).reason
  return typeof reason === 'string' ? reason : 'Resource'
}

/** All problems as a SARIF log. */
export function sarifOf(problems: readonly Problem[]): string {
  const ids = [...new Set(problems.map(ruleOf))].sort()
  const rules = ids.map((id): ReportingDescriptor => ({ id, shortDescription: { text: ruleTexts[id] ?? id } }))
  const log: Log = {
    $schema: sarifSchema,
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'penstock', version, rules } },
        results: problems.flatMap(errorsOf).map((problem) => resultOf(problem, ids)),
      },
    ],
  }
  return JSON.stringify(log, undefined, 2)
}

/** One problem for each error of a program. */
function errorsOf(problem: Problem & { readonly others?: readonly PlacedDiagnostic[] }): readonly Problem[] {
  const { others = [], diagnostic, ...rest } = problem
  if (diagnostic === undefined || others.length === 0) return [problem]
  return [
    { ...rest, rendered: diagnostic.rendered },
    ...others.map(({ code, message, rendered, place }) => ({
      ...rest,
      ...place,
      message: `The program does not compile: ${message} (${code})`,
      rendered,
    })),
  ]
}

function resultOf(problem: Problem, rules: readonly string[]): Result {
  const { severity, informational, path, file, line, column } = problem
  const level = severity === 'error' ? 'error' : informational === true ? 'note' : 'warning'
  const region =
    line === undefined ? {} : { region: { startLine: line, ...(column === undefined ? {} : { startColumn: column }) } }
  const ruleId = ruleOf(problem)
  return {
    ruleId,
    ruleIndex: rules.indexOf(ruleId),
    level,
    message: { text: textOf(problem) },
    locations: [
      {
        ...(file === undefined ? {} : { physicalLocation: { artifactLocation: { uri: uriOf(file) }, ...region } }),
        ...(path === '' ? {} : { logicalLocations: [{ fullyQualifiedName: path }] }),
      },
    ],
  }
}

/** The content of a block of the text format, without its location. */
function textOf(problem: Problem): string {
  const { message, help } = problem
  const sentence = /[.!?]$/.test(message) ? message : `${message}.`
  return [sentence, renderedDiagnostic(problem), help].filter((part) => part !== undefined && part !== '').join('\n')
}

function uriOf(file: string): string {
  const here = relative(process.cwd(), file)
  if (here.startsWith('..') || isAbsolute(here)) return pathToFileURL(file).href
  return here.split(sep).map(encodeURIComponent).join('/')
}

// --- JUnit ---

interface Case {
  readonly name: string
  readonly classname: string
  readonly failure?: { readonly type: string; readonly message: string; readonly text: string }
}

interface Suite {
  readonly name: string
  readonly cases: readonly Case[]
  /** Warnings, which do not cause a failure. */
  readonly output?: string
}

/** Problems as JUnit XML: a suite for each file, with a failed case for each error. */
export function junitOfProblems(problems: readonly Problem[], files: readonly string[]): string {
  const all = [...new Set([...files, ...problems.map(({ file }) => file ?? '')])].sort()
  return junit(
    'penstock lint',
    all.map((file) => {
      const own = problems.filter((problem) => (problem.file ?? '') === file)
      const name = file === '' ? 'resources' : uriOf(file)
      const errors = own.filter(({ severity }) => severity === 'error')
      const rest = own.filter(({ severity }) => severity !== 'error')
      const place = ({ line, column, path }: Problem) =>
        [line === undefined ? '' : `line ${line}${column === undefined ? '' : `, column ${column}`}`, path]
          .filter((part) => part !== '')
          .join(': ')
      const cases = errors.map((problem): Case => {
        const at = place(problem)
        const failure = { type: ruleOf(problem), message: problem.message, text: `${at}\n${textOf(problem)}`.trim() }
        return { name: at === '' ? ruleOf(problem) : at, classname: name, failure }
      })
      return {
        name,
        cases: cases.length === 0 ? [{ name: 'lint', classname: name }] : cases,
        ...(rest.length === 0
          ? {}
          : { output: rest.map((problem) => `${place(problem)}: ${textOf(problem)}`).join('\n') }),
      }
    }),
  )
}

/** Test results as JUnit XML: a suite for each Pipeline. */
export function junitOfTests(tests: readonly UnitTestOutcome[]): string {
  const byPipeline = Map.groupBy(tests, ({ name }) => name.slice(0, Math.max(0, name.indexOf(': '))))
  return junit(
    'penstock test',
    [...byPipeline].map(([pipeline, own]) => ({
      name: pipeline,
      cases: own.map(({ name, failures }): Case => {
        const short = pipeline === '' ? name : name.slice(pipeline.length + 2)
        const message = failures[0]?.split('\n')[0] ?? ''
        return {
          name: short,
          classname: pipeline,
          ...(failures.length === 0 ? {} : { failure: { type: 'TestsFailed', message, text: failures.join('\n\n') } }),
        }
      }),
    })),
  )
}

function junit(name: string, suites: readonly Suite[]): string {
  const count = (all: readonly Case[]) =>
    `tests="${all.length}" failures="${all.filter(({ failure }) => failure !== undefined).length}" errors="0"`
  const lines = ['<?xml version="1.0" encoding="UTF-8"?>']
  lines.push(`<testsuites name="${escaped(name)}" ${count(suites.flatMap(({ cases }) => cases))}>`)
  for (const suite of suites) {
    lines.push(`  <testsuite name="${escaped(suite.name)}" ${count(suite.cases)}>`)
    for (const { name: own, classname, failure } of suite.cases) {
      const open = `    <testcase name="${escaped(own)}" classname="${escaped(classname)}"`
      if (failure === undefined) {
        lines.push(`${open}/>`)
        continue
      }
      lines.push(`${open}>`)
      lines.push(
        `      <failure message="${escaped(failure.message)}" type="${escaped(failure.type)}">${escaped(failure.text)}</failure>`,
      )
      lines.push('    </testcase>')
    }
    if (suite.output !== undefined) lines.push(`    <system-out>${escaped(suite.output)}</system-out>`)
    lines.push('  </testsuite>')
  }
  lines.push('</testsuites>')
  return lines.join('\n')
}

/** Text in XML; characters that XML 1.0 does not allow become replacement characters. */
function escaped(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
