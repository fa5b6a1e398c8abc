// All pages of the reference: components, settings, functions, metrics and error codes, collected from their declarations.

import { optionsOf } from '../config/component-options.ts'
import { exampleOptions } from '../config/example.ts'
import { globalOptions, underOperator } from '../config/globals.ts'
import { testOptions } from '../config/unit-test-shape.ts'
import { type ErrorCode, errorCodes } from '../errors.ts'
import { writeJson } from '../formats/json.ts'
import { components } from '../registry.ts'
import { codeExamples } from '../remap/code-examples.ts'
import { diagnosticCodes } from '../remap/codes.ts'
import type { FunctionDeclaration, Parameter } from '../remap/function.ts'
import { functions } from '../remap/functions.ts'
import { type Kind, kinds } from '../remap/kind.ts'
import { languagePages } from '../remap/language.ts'
import {
  componentPage,
  diagnosticPage,
  errorPage,
  type FunctionFacts,
  functionPage,
  languagePage,
  metricPage,
  type Page,
  settingsPage,
} from '../schema/reference.ts'
import { metricTable } from '../telemetry/metric-table.ts'
import { errorHelp } from './error-help.ts'

const componentKinds = ['source', 'transform', 'sink'] as const

/** Every page, in index order. */
export function referencePages(): Page[] {
  return [
    settingsPage(
      'configuration',
      'Configuration',
      'Top-level settings of a configuration.',
      globalOptions,
      underOperator,
    ),
    settingsPage('tests', 'Unit tests', 'Entries of the top-level setting `tests`.', testOptions),
    ...componentKinds
      .flatMap((kind) =>
        byName(
          describedComponents().filter((each) => each.kind === kind),
          (each) => each.type,
        ),
      )
      .map(componentPage),
    ...languagePages().map(({ names, title, summary, text }) => languagePage(names, title, summary, text)),
    ...byName(functions, (each) => each.name).map((each) => functionPage(factsOf(each))),
    ...byName(Object.entries(metricTable), ([name]) => name).map(([name, facts]) => metricPage(name, facts)),
    ...byName(Object.entries(errorCodes), ([name]) => name).map(([name, line]) =>
      errorPage(name, line, errorHelp[name as ErrorCode]),
    ),
    ...Object.entries(diagnosticCodes).map(([code, line]) => diagnosticPage(code, line, codeExamples[Number(code)])),
  ]
}

/** The components with the options that their kind adds. */
export function describedComponents(declarations = components) {
  return declarations.map((component) => ({
    ...component,
    options: optionsOf(component).members,
    example: exampleOptions(component),
  }))
}

function byName<T>(items: readonly T[], name: (item: T) => string): T[] {
  return items.toSorted((left, right) => (name(left) < name(right) ? -1 : 1))
}

function factsOf(declaration: FunctionDeclaration): FunctionFacts {
  const { name, category, summary, description, errors, deprecated, examples, pure, fallible, returns } = declaration
  return {
    name,
    category,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(errors === undefined ? {} : { errors }),
    ...(deprecated === undefined ? {} : { deprecated }),
    examples,
    pure,
    parameters: declaration.parameters.map(parameterFacts),
    closure: declaration.closure !== undefined,
    returns: typeof returns === 'function' ? 'depends on its arguments' : kindWords(returns),
    fallible: typeof fallible === 'function' ? 'sometimes' : fallible,
  }
}

const basicKinds = ['string', 'integer', 'float', 'boolean', 'timestamp', 'regex', 'null', 'array', 'object'] as const

/** The basic kinds that a kind covers, in words. */
function kindWords(kind: Kind): string {
  const covered = basicKinds.filter((name) => kind.overlaps(kinds[name]))
  if (covered.length === basicKinds.length) return 'any'
  if (covered.length === 0) return 'nothing'
  return covered.length === 1 ? (covered[0] as string) : `${covered.slice(0, -1).join(', ')} or ${covered.at(-1)}`
}

function parameterFacts(parameter: Parameter): FunctionFacts['parameters'][number] {
  const fallback = parameter.default
  return {
    name: parameter.name,
    description: parameter.description,
    kind: parameter.query === true ? 'path' : kindWords(parameter.kind),
    // Optional parameters without a default are marked as such.
    required: parameter.required !== false && fallback === undefined,
    default: fallback === undefined ? undefined : writeJson(fallback),
    enum: parameter.enum,
  }
}
