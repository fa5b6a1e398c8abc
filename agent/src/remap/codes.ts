// What each code of the compiler's diagnostics means, in one line for users.

export const diagnosticCodes: Readonly<Record<number, string>> = {
  100: 'An expression that can fail stands where nothing handles the failure.',
  101: 'A regular expression is not valid.',
  102: 'The predicate of an `if` is not a boolean.',
  103: 'A value that can fail is assigned to a single target.',
  104: '`ok, err =` is used on an expression that cannot fail.',
  105: 'There is no function of this name.',
  106: 'A call has more arguments than the function has parameters.',
  107: 'A call lacks an argument that is required.',
  108: 'A call names a parameter that the function does not have.',
  109: 'A closure is given to a function that takes none.',
  110: 'An argument is not, or not always, of the kind that the parameter takes.',
  111: 'A function that needs a closure is called without one.',
  113: 'The message of `abort` is not a string.',
  120: 'A closure has the wrong number of parameters.',
  121: 'A closure cannot go over a value of this kind.',
  122: 'The block of a closure gives a value of the wrong kind.',
  203: 'The program has a token where it cannot stand.',
  204: 'The program ends in the middle of an expression.',
  205: 'A reserved word is used as a name.',
  206: 'An integer does not fit into 64 bits.',
  207: 'A string is not closed.',
  208: 'A raw string, regular expression or timestamp is not closed.',
  209: 'A string has an escape that does not exist.',
  211: 'A Unicode escape names no character.',
  315: 'Something is changed that may only be read.',
  400: 'An argument must be a literal or a path, and is not; always told inside of E610.',
  401: 'An argument is none of the words that the parameter takes; always told inside of E610.',
  403: 'An argument has a value that the function cannot use; always told inside of E610.',
  601: 'A timestamp is not an RFC 3339 date and time with a zone.',
  610: 'A function refuses its arguments before anything runs.',
  620: '`!` is used on a call that cannot fail.',
  630: 'An argument can fail, and nothing handles it.',
  631: 'The value of `abort` or `return` can fail.',
  640: 'An assignment has no effect.',
  641: 'Something is assigned to what is neither a variable nor a path.',
  642: 'A field or item is assigned below a value that cannot have any.',
  650: 'Comparisons are chained.',
  651: '`??` follows an expression that cannot fail.',
  652: '`|` is used on something that is not an object.',
  660: '`!` negates something that is not a boolean.',
  701: 'A variable is used that does not exist here.',
  710: 'A call reaches beyond the event, to a file, the environment, the host or the network, which programs of namespaced resources must not.',
  801: 'Something deprecated is used.',
  900: 'A result is not used.',
}

/** The notes of a diagnostic that its code calls for. */
export function notesOf(code: number): readonly string[] {
  const line = diagnosticCodes[code]
  return code < 100 || code > 110 || line === undefined ? [] : [`learn more about error code ${code}: ${line}`]
}
