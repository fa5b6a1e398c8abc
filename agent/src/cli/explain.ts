// `explain NAME`: prints the reference page of a component, function, metric or error code.

import { exitCodes } from '../command-line/exit-codes.ts'
import { type Flags, flagHelp, parseFlags } from '../command-line/flags.ts'
import { helpText } from '../command-line/help.ts'
import { elsewhereText, plainName } from '../config/elsewhere.ts'
import { PenstockError } from '../errors.ts'
import { closest } from '../schema/problems.ts'
import { optionText, type Page } from '../schema/reference.ts'
import { sheetOf } from '../terminal.ts'
import { pageText } from './page-text.ts'
import { describedComponents, referencePages } from './pages.ts'

export const flags = {
  help: { type: 'boolean', short: 'h', help: 'Print this text.' },
} as const satisfies Flags

/**
 * @param unknownHelp advice for an unknown name @param others names that the caller explains itself
 * @param ownText the caller's text about the name, for a name without a page
 */
export async function run(
  argv: readonly string[],
  unknownHelp = '`penstock-agent list` prints the components; `penstock explain` also describes Kubernetes resources.',
  others: readonly string[] = [],
  ownText?: string,
): Promise<number> {
  const { flags: given, words } = parseFlags(argv, flags)
  if (given.help) {
    process.stdout.write(
      helpText(
        `Usage: penstock-agent explain NAME\n\nPrints the page of a component (http), a function (parse_json), a language topic (closures), an option of components (buffer), a metric or an error code (E103, PEN_DATA_DIR). Also accepts names of products (Loki) and of other agents' components.\n\n${flagHelp(flags)}\n`,
      ),
    )
    return exitCodes.ok
  }
  const [name] = words
  if (name === undefined || words.length > 1) {
    throw new PenstockError(
      'PEN_USAGE',
      'Name one component, function, metric or error code: penstock-agent explain NAME.',
    )
  }
  const pages = referencePages()
  // A name may have two meanings: `filter` is a transform and a function.
  const exact = pages.filter((page) => page.names.includes(name))
  const found = exact.length > 0 ? exact : pages.filter((page) => page.names.some((each) => isSame(each, name)))
  const forProduct = found.length > 0 ? [] : pages.filter((page) => isFor(page, name))
  if (forProduct.length > 1) {
    const lines = forProduct.map((page) => `  ${page.names[0]}  ${page.summary}`)
    process.stdout.write(`Components for ${name}:\n${lines.join('\n')}\n\nName one of them to see its page.\n`)
    return exitCodes.ok
  }
  found.push(...forProduct)
  if (found.length === 0) {
    const elsewhere = elsewhereText(name)
    if (elsewhere !== undefined) {
      process.stdout.write(elsewhere)
      return exitCodes.ok
    }
    const texts = [ownText, optionsText(name)].filter((text) => text !== undefined)
    if (texts.length > 0) {
      process.stdout.write(pageText(texts.join('\n'), sheetOf(process.stdout)))
      return exitCodes.ok
    }
    const near = closest(name, [...pages.flatMap((page) => page.names), ...others])
    const hint = near === undefined ? unknownHelp : `Did you mean "${near}"?`
    throw new PenstockError('PEN_USAGE', `Nothing is named "${name}". ${hint}`)
  }
  process.stdout.write(pageText(found.map((page) => page.text).join('\n---\n\n'), sheetOf(process.stdout)))
  return exitCodes.ok
}

/** If the descriptions of an option differ more than this, the output names its components instead. */
const maxDescriptions = 3

type Described = ReturnType<typeof describedComponents>[number]

/** The description of an option, and the components that have it; undefined if no component has it. */
function optionsText(name: string): string | undefined {
  const all = describedComponents()
  const ownersByText = Map.groupBy(
    all.filter(({ options }) => Object.hasOwn(options, name)),
    ({ options }) => optionText(name, options[name] as Described['options'][string]),
  )
  if (ownersByText.size === 0) return undefined
  if (ownersByText.size > maxDescriptions) {
    const owners = ownersText([...ownersByText.values()].flat(), all)
    return `Components with an option \`${name}\`: ${owners}.\n\nName one of them to see its page.\n`
  }
  return [...ownersByText].map(([text, some]) => `Option of ${ownersText(some, all)}:\n\n${text}\n`).join('\n')
}

/** The names of components; if all components of a kind are among them, the kind instead. */
function ownersText(some: readonly Described[], all: readonly Described[]): string {
  const totals = Map.groupBy(all, ({ kind }) => kind)
  return [...Map.groupBy(some, ({ kind }) => kind)]
    .flatMap(([kind, own]) =>
      own.length === totals.get(kind)?.length ? [`all ${kind}s`] : own.map(({ type }) => `${type} (${kind})`),
    )
    .join(', ')
}

const isSame = (left: string, right: string): boolean => plainName(left) === plainName(right)

/** Whether a component works with a product; one word of the product's name suffices. */
function isFor({ products = [] }: Page, name: string): boolean {
  return products.some((product) => isSame(product, name) || product.split(' ').some((word) => isSame(word, name)))
}
