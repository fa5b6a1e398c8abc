// Finds calls that access something other than the event, without compiling the program. Callers that reject such calls use it for
// their own messages.

import type { FunctionDeclaration, Parameter } from './function.ts'
import { findFunction } from './functions.ts'
import { parseProgram } from './parser.ts'
import { isStackOverflow } from './stack.ts'

export interface ReachingCall {
  readonly name: string
  /** Offset of the call, or of the argument that names a file, in UTF-16 units of the source. */
  readonly offset: number
  readonly reaches: NonNullable<FunctionDeclaration['reaches']> | 'file'
  /** The parameter that names a file. */
  readonly parameter?: string
}

/** Calls that access something other than the event, in source order, including those in closures and arguments. */
export function reachingCalls(source: string): ReachingCall[] {
  const found: ReachingCall[] = []
  // The tree may be as deep as the program is nested, so this walk is iterative.
  const open: unknown[] = [parsed(source)]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== 'object' || node === null) continue
    if ('node' in node && node.node === 'call') look(node as unknown as CallNode, found)
    for (const member of Object.values(node)) if (member !== undefined) open.push(member)
  }
  return found.toSorted((left, right) => left.offset - right.offset)
}

/** Reports no calls for a program nested too deeply; the compiler reports that. */
function parsed(source: string): unknown {
  try {
    return parseProgram(source)
  } catch (error) {
    if (isStackOverflow(error)) return []
    throw error
  }
}

interface CallNode {
  readonly name: string
  readonly span: readonly [number, number]
  readonly arguments: readonly { readonly keyword: string | undefined; readonly span: readonly [number, number] }[]
}

function look(call: CallNode, found: ReachingCall[]): void {
  const declaration = findFunction(call.name)
  if (declaration === undefined) return
  const { name } = declaration
  if (declaration.reaches !== undefined) {
    found.push({ name, offset: call.span[0], reaches: declaration.reaches })
  }
  const indexes = parameterIndexes(declaration.parameters, call.arguments)
  for (const [index, argument] of call.arguments.entries()) {
    const parameter = declaration.parameters[indexes[index] as number]
    if (parameter?.meaning !== 'file') continue
    found.push({ name, offset: argument.span[0], reaches: 'file', parameter: parameter.name })
  }
}

/** The parameter index of each argument of a call; an index beyond the parameters if no parameter matches. */
export function parameterIndexes(
  parameters: readonly Parameter[],
  args: readonly { readonly keyword: string | undefined }[],
): number[] {
  let position = 0
  return args.map(({ keyword }) => {
    if (keyword === undefined) return position++
    const at = parameters.findIndex((parameter) => parameter.name === keyword)
    if (at === position) position++
    return at
  })
}
