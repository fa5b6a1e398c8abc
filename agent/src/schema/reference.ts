// Reference pages in Markdown, derived from declarations: one for each component, function, metric and error code.
// The same declarations always result in the same bytes. People also read the pages in a terminal, so they use lists, not tables.

import { stringify } from 'yaml'
import { meaningOf, operatorTreatment } from './meaning.ts'
import { isRequired, type Option, type Options } from './options.ts'
import { aliasesOf, isTable, membersOf, type Schema, variantsOf } from './walk.ts'

export interface Page {
  /** The words by which `explain` finds the page. */
  readonly names: readonly string[]
  /** Products that the component works with, by which `explain` also finds the page. */
  readonly products?: readonly string[]
  /** Path relative to the reference folder. */
  readonly file: string
  /** Heading of the index section that lists the page. */
  readonly section: string
  /** One sentence for the index. */
  readonly summary: string
  readonly text: string
}

/** The content of a component's page. */
export interface ComponentFacts {
  readonly type: string
  readonly kind: 'source' | 'transform' | 'sink'
  readonly summary: string
  readonly description?: string
  readonly products?: readonly string[]
  readonly aliases?: readonly string[]
  /** The replacement. */
  readonly deprecated?: string
  /** The component's options, including those that its kind adds. */
  readonly options: Options
  /** Options for an example, as a user would write them. */
  readonly example: Readonly<Record<string, unknown>>
  readonly outputs?: readonly string[]
  readonly accepts?: readonly string[]
  readonly acknowledges?: boolean
  readonly singleton?: boolean
}

export function componentPage(component: ComponentFacts): Page {
  const { type, kind, summary, description, products = [], aliases = [] } = component
  const title = `${kind[0]?.toUpperCase()}${kind.slice(1)}`
  const facts = [
    ...(products.length === 0 ? [] : [`Works with ${products.join(', ')}.`]),
    ...(component.accepts === undefined ? [] : [`Accepts ${component.accepts.join(' and ')} events.`]),
    ...(component.outputs === undefined ? [] : [`Emits ${component.outputs.join(' and ')} events.`]),
    ...(kind === 'source'
      ? [
          component.acknowledges === true
            ? 'Acknowledges events at their origin after delivery, if a sink requires it.'
            : 'Does not acknowledge events at their origin.',
          component.singleton === true
            ? 'In an aggregator, only one replica at a time runs it (`singleton`).'
            : 'Every agent with this source in its configuration runs it.',
        ]
      : []),
    ...(aliases.length === 0 ? [] : [`Also accepted as ${aliases.map(code).join(', ')}.`]),
    ...(component.deprecated === undefined ? [] : [`Deprecated: ${component.deprecated}`]),
  ]
  const inputs = kind === 'source' ? {} : { inputs: [kind === 'sink' ? 'some_transform' : 'some_source'] }
  const example = stringify(
    { [`${kind}s`]: { [`my_${type}`]: { type, ...inputs, ...component.example } } },
    { lineWidth: 0 },
  )
  const text = [
    `# ${type}`,
    `${title}. ${summary}`,
    ...(description === undefined ? [] : [description]),
    facts.map((fact) => `- ${fact}`).join('\n'),
    '## Example',
    `\`\`\`yaml\n${example}\`\`\``,
    '## Options',
    [
      `- \`type\` (\`${type}\`, required): The type of the component.`,
      ...(kind === 'source'
        ? []
        : ['- `inputs` (list of strings, required): Ids of the components that it reads; `*` matches any text.']),
      ...optionLines(component.options, 0, true),
    ].join('\n'),
  ].join('\n\n')
  const names = [type, ...aliases]
  return { names, products, file: `${kind}s/${type}.md`, section: `${title}s`, summary, text: `${text}\n` }
}

/** A page for settings that belong to no component. `underOperator` maps each option to its replacement under an operator. */
export function settingsPage(
  name: string,
  title: string,
  summary: string,
  options: Options,
  underOperator: Readonly<Record<string, string>> = {},
): Page {
  const others = Object.entries(underOperator).map(([option, instead]) => `- \`${option}\`: ${instead}`)
  const intro = 'Bundles and Pipelines cannot contain these options. Use the following instead:'
  const last = others.length === 0 ? '' : `\n## Under an operator\n\n${intro}\n\n${others.join('\n')}\n`
  const text = `# ${title}\n\n${summary}\n\n## Options\n\n${optionLines(options, 0, false).join('\n')}\n${last}`
  return { names: [name], file: `${name}.md`, section: 'Configuration', summary, text }
}

export interface FunctionFacts {
  readonly name: string
  readonly category: string
  readonly summary: string
  readonly description?: string
  readonly parameters: readonly {
    readonly name: string
    readonly description: string
    /** The accepted kinds, in words. */
    readonly kind: string
    readonly required: boolean
    /** The default in the syntax of programs; undefined if there is none. */
    readonly default: string | undefined
    readonly enum?: readonly string[] | undefined
  }[]
  readonly closure: boolean
  /** The returned kinds, in words. */
  readonly returns: string
  readonly fallible: 'never' | 'sometimes' | 'always'
  readonly errors?: readonly string[]
  readonly pure: boolean
  readonly deprecated?: string
  readonly examples: readonly { readonly source: string; readonly result: string }[]
}

export function functionPage(facts: FunctionFacts): Page {
  const { name, summary, parameters } = facts
  const call = parameters.map((each) => (each.required ? each.name : `[${each.name}]`)).join(', ')
  const fallible = {
    never: 'Infallible with arguments of these kinds.',
    sometimes: 'Fallible, unless the kinds of the arguments exclude errors.',
    always: 'Fallible.',
  }[facts.fallible]
  const text = [
    `# ${name}`,
    `Function, category ${facts.category}. ${summary}`,
    ...(facts.deprecated === undefined ? [] : [`Deprecated: ${facts.deprecated}`]),
    ...(facts.description === undefined ? [] : [facts.description]),
    `\`\`\`coffee\n${name}(${call})${facts.closure ? ' -> |…| { … }' : ''}\n\`\`\``,
    [
      `- Returns: ${facts.returns}.`,
      `- ${fallible}`,
      ...(facts.pure ? [] : ['- Its result may differ between calls, or it has side effects.']),
    ].join('\n'),
    ...(parameters.length === 0
      ? []
      : [
          '## Parameters',
          parameters
            .map((each) => {
              const notes = [
                each.kind,
                ...(each.required ? ['required'] : []),
                ...(each.default === undefined ? [] : [`default \`${each.default}\``]),
              ].join(', ')
              const words = each.enum === undefined ? '' : ` One of ${each.enum.map(code).join(', ')}.`
              return `- \`${each.name}\` (${notes}): ${each.description}${words}`
            })
            .join('\n'),
        ]),
    ...(facts.errors === undefined || facts.errors.length === 0
      ? []
      : ['## Errors', facts.errors.map((error) => `- ${error}`).join('\n')]),
    ...(facts.examples.length === 0
      ? []
      : [
          '## Examples',
          facts.examples
            .map(({ source, result }) => `\`\`\`coffee\n${source.trimEnd()}\n# ${result.trimEnd()}\n\`\`\``)
            .join('\n\n'),
        ]),
  ].join('\n\n')
  return { names: [name], file: `functions/${name}.md`, section: 'Functions', summary, text: `${text}\n` }
}

export interface MetricFacts {
  readonly type: string
  readonly help: string
  readonly labels: readonly string[]
  readonly component: boolean
}

export function metricPage(name: string, facts: MetricFacts): Page {
  const labels = facts.component ? ['component_id', 'component_kind', 'component_type', ...facts.labels] : facts.labels
  const text = [
    `# ${name}`,
    `Metric, ${facts.type}. ${facts.help}`,
    facts.component ? 'Measured for each component.' : 'Measured for the agent as a whole.',
    ...(labels.length === 0 ? [] : [`Labels: ${labels.map(code).join(', ')}.`]),
  ].join('\n\n')
  return { names: [name], file: `metrics/${name}.md`, section: 'Metrics', summary: facts.help, text: `${text}\n` }
}

export interface ErrorFacts {
  readonly means: string
  readonly fix: string
  readonly example?: {
    readonly files?: Readonly<Record<string, string>>
    readonly config?: string
    readonly command: string
    readonly says: string
  }
}

export function errorPage(name: string, line: string, { means, fix, example }: ErrorFacts): Page {
  const files = { ...example?.files, ...(example?.config === undefined ? {} : { 'agent.yaml': example.config }) }
  const shown = Object.entries(files).map(([file, content]) =>
    content === '' || !content.includes('\n')
      ? `A file \`${file}\`${contentWords(content)}.`
      : `\`\`\`yaml\n# ${file}\n${content}\`\`\``,
  )
  const text = [
    `# ${name}`,
    `Error code. ${line} ${means}`,
    '## Remedy',
    fix,
    ...(example === undefined
      ? []
      : ['## Example', ...shown, `\`\`\`console\n$ ${example.command}\n… ${example.says} …\n\`\`\``]),
  ].join('\n\n')
  return { names: [name], file: `errors/${name}.md`, section: 'Error codes', summary: line, text: `${text}\n` }
}

/** Describes the content of a small file in an example. */
function contentWords(content: string): string {
  if (content === 'CERTIFICATE') return ' with a certificate'
  return content === '' ? '' : ` with the text \`${content}\``
}

/** The page for an error code of the remap compiler, such as `E103`, which `explain` also finds by its number. */
export function diagnosticPage(
  code: string,
  line: string,
  example?: { readonly wrong: string; readonly right: string },
): Page {
  const name = `E${code}`
  const shown = (program: string): string => `\`\`\`coffee\n${program}\n\`\`\`\n`
  const examples =
    example === undefined ? '' : `\nDoes not compile:\n\n${shown(example.wrong)}\nCorrect:\n\n${shown(example.right)}`
  const text = `# ${name}\n\nError code of remap programs. ${line}\n${examples}`
  return {
    names: [name, code],
    file: `errors/${name}.md`,
    section: 'Error codes of remap programs',
    summary: line,
    text,
  }
}

/** A page about the remap language. */
export function languagePage(names: readonly string[], title: string, summary: string, text: string): Page {
  const file = `language/${names[0]}.md`
  return { names, file, section: 'The remap language', summary, text: `# ${title}\n\n${summary}\n\n${text}\n` }
}

/** The page that lists all other pages, in the given order. */
export function indexPage(pages: readonly Page[]): string {
  const parts = ['# Reference', 'Generated from the declarations; `penstock-agent explain NAME` prints a page.']
  for (const [section, listed] of Map.groupBy(pages, (page) => page.section)) {
    const lines = listed.map((page) => {
      const known = page.products === undefined || page.products.length === 0 ? '' : ` (${page.products.join(', ')})`
      return `- [${page.names[0]}](${page.file})${known}: ${page.summary}`
    })
    parts.push(`## ${section}`, lines.join('\n'))
  }
  return `${parts.join('\n\n')}\n`
}

// --- Options ---

/** @param isResource whether the resources of an operator also have these options */
/** An option with its members, as on the page of its component. */
export function optionText(name: string, schema: Schema): string {
  return optionLines({ [name]: schema }, 0, false).join('\n')
}

function optionLines(options: Readonly<Record<string, Schema>>, depth: number, isResource: boolean): string[] {
  return Object.entries(options).flatMap(([name, schema]) => [
    `${'  '.repeat(depth)}- ${optionLine(name, schema, isResource)}`,
    ...memberLines(schema, depth + 1, isResource),
  ])
}

function optionLine(name: string, schema: Schema, isResource: boolean): string {
  const notes = [typeWords(schema)]
  const fallback = schema['default']
  if (isRequired(schema as Option<unknown>)) notes.push('required')
  else if (fallback !== undefined && !isEmptyTable(fallback)) notes.push(`default ${code(defaultText(fallback))}`)
  const parts = [`\`${name}\` (${notes.join(', ')}): ${schema['description']}`]
  const range = rangeText(schema)
  if (range !== undefined) parts.push(range)
  const examples = (schema['examples'] ?? []) as readonly unknown[]
  if (examples.length > 0) parts.push(`For example ${examples.map((each) => code(plainText(each))).join(', ')}.`)
  const aliases = aliasesOf(schema)
  if (aliases.length > 0) parts.push(`Also accepted as ${aliases.map(code).join(', ')}.`)
  const { note } = operatorTreatment(meaningOf(schema))
  if (isResource && note !== undefined) parts.push(note)
  if (schema['x-deprecated'] !== undefined) parts.push(`Deprecated: ${schema['x-deprecated']}`)
  return parts.join(' ')
}

function memberLines(schema: Schema, depth: number, isResource: boolean): string[] {
  const tag = (schema['discriminator'] as { propertyName?: string } | undefined)?.propertyName
  const variants = variantsOf(schema)
  if (tag !== undefined && variants !== undefined) {
    return variants.flatMap((variant) => {
      const { [tag]: choice, ...rest } = membersOf(variant)
      return [
        `${'  '.repeat(depth)}- \`${tag}: ${choice?.['const']}\`, with`,
        ...(Object.keys(rest).length === 0
          ? [`${'  '.repeat(depth + 1)}- nothing else.`]
          : optionLines(rest, depth + 1, isResource)),
      ]
    })
  }
  if (variants !== undefined) return variants.flatMap((variant) => memberLines(variant, depth, isResource))
  if (schema['type'] === 'array') return memberLines((schema['items'] ?? {}) as Schema, depth, isResource)
  if (schema['type'] !== 'object') return []
  const others = schema['additionalProperties']
  if (typeof others === 'object' && others !== null) return memberLines(others as Schema, depth, isResource)
  return optionLines(membersOf(schema), depth, isResource)
}

function typeWords(schema: Schema): string {
  const variants = variantsOf(schema)
  if (schema['discriminator'] !== undefined) return 'table'
  if (variants !== undefined) return [...new Set(variants.map(typeWords))].join(' or ')
  const words = schema['enum'] as readonly unknown[] | undefined
  if (words !== undefined) {
    const extensions = (schema['x-extensions'] ?? []) as readonly unknown[]
    const list = (each: readonly unknown[]) => each.map((word) => code(String(word))).join(', ')
    const known = `one of ${list(words.filter((word) => !extensions.includes(word)))}`
    return extensions.length === 0 ? known : `${known}; extensions: ${list(extensions)}`
  }
  switch (schema['type']) {
    case 'string':
      return stringWords(schema)
    case 'integer':
      return schema['x-unit'] === 'bytes' ? 'bytes' : 'integer'
    case 'number':
      return schema['x-unit'] === 'seconds' ? 'seconds' : 'number'
    case 'boolean':
      return 'boolean'
    case 'array':
      return `list of ${plural(typeWords((schema['items'] ?? {}) as Schema))}`
    case 'object': {
      const others = schema['additionalProperties']
      if (typeof others === 'object' && others !== null) return `map to ${plural(typeWords(others as Schema))}`
      return 'table'
    }
    default:
      return 'anything'
  }
}

function stringWords(schema: Schema): string {
  const meaning = meaningOf(schema)
  if (schema['format'] === 'url') return 'URL'
  if (schema['format'] === 'template') return 'template'
  if (schema['format'] === 'field-path') return 'field path'
  if (meaning.program === 'program') return 'remap program'
  if (meaning.program === 'condition') return 'remap condition'
  if (meaning.secret === true) return 'secret'
  return meaning.file === undefined ? 'string' : 'file path'
}

function plural(words: string): string {
  return /^(one of|list|map|anything|bytes|seconds)/.test(words) ? words : words.replace(/\b(\w+)$/, '$1s')
}

function rangeText(schema: Schema): string | undefined {
  const min = schema['minimum'] as number | undefined
  const above = schema['exclusiveMinimum'] as number | undefined
  const max = (schema['maximum'] ?? schema['exclusiveMaximum']) as number | undefined
  const parts: string[] = []
  if (above !== undefined) parts.push(`more than ${above}`)
  else if (min !== undefined && min !== 0) parts.push(`at least ${min}`)
  if (max !== undefined) parts.push(`${schema['maximum'] === undefined ? 'less than' : 'at most'} ${max}`)
  const text = parts.join(' and ')
  return text === '' ? undefined : `${text[0]?.toUpperCase()}${text.slice(1)}.`
}

function defaultText(value: unknown): string {
  // Limits that are effectively unlimited.
  return typeof value === 'number' && value >= 9.2e18 ? 'unlimited' : plainText(value)
}

function plainText(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : JSON.stringify(value)
}

function isEmptyTable(value: unknown): boolean {
  return isTable(value) && Object.keys(value).length === 0
}

function code(text: string): string {
  return text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``
}
