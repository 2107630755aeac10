class P { id(){return 'mock';} async callApi(prompt){ 
 const m=[['France','The capital is Paris.'],['Spain','Madrid'],['Italy','Rome'],['JSON','{"a": 1}'],['wrapped','Here: {"a": 2} ok'],['wrong','sorry']];
 for(const [k,v] of m) if(prompt.includes(k)) return {output: prompt.startsWith('Second') && k==='Spain' ? 'Lisbon' : v}; return {output:'x'}; } }
module.exports = P;
